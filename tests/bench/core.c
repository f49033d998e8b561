/* SPDX-License-Identifier: MIT */
/* The allocator's own cost, over a device whose calls cost nothing: pairs of an allocation and its
 * free on one stream, with nothing else live ("hot"). Arguments: pairs, bytes. Prints one JSON
 * line. */
#include "base/clock.h"
#include "support/heap_fixture.h"

int main(int argc, char **argv)
{
    static struct fixture fix;
    long pairs = argc > 1 ? atol(argv[1]) : 200000;
    size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 1024;
    fixture_open_with(&fix, 1, NULL);
    fix.config.verify = false;
    fix.heaps[0]->rekeys = false;
    struct cca_request request = {.bytes = bytes, .key = 7, .thread = 1};
    uint64_t began_ns = cca_clock_ns();
    for (long i = 0; i < pairs; i++) {
        uint64_t addr = 0;
        if (cca_allocator_alloc(fix.allocator, fix.heaps[0], &request, &addr).kind != CCA_OK ||
            cca_allocator_free(fix.allocator, addr, &request) != CCA_FREE_DONE) {
            return 1;
        }
    }
    double ns = (double)(cca_clock_ns() - began_ns) / (double)pairs;
    printf("{\"bench\": \"core hot pair\", \"bytes\": %zu, \"pairs\": %ld, \"ns\": %.1f}\n", bytes,
           pairs, ns);
    fixture_close(&fix);
    return 0;
}
