/* SPDX-License-Identifier: MIT */
#include "process/leaks.h"

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "snapshot/top_stacks.h"

enum { LINES_MAX = 5, FRAMES_MAX = 6, LINE_BYTES = 2048 };

static void put_age(struct cca_text *text, uint64_t since_ns, uint64_t now_ns)
{
    double seconds = now_ns > since_ns ? (double)(now_ns - since_ns) / 1e9 : 0;

    cca_text_double(text, seconds, seconds < 10 ? 2 : 0);
    cca_text_str(text, " s old");
}

static void print_holder(const struct cca_model *model, int device, const struct cca_holder *holder,
                         uint64_t now_ns)
{
    char buf[LINE_BYTES];
    struct cca_text text;

    cca_text_init(&text, buf, sizeof(buf) - 1);
    cca_text_str(&text, "cca: device ");
    cca_text_i64(&text, device);
    cca_text_str(&text, ": leaked ");
    cca_text_size(&text, holder->bytes);
    cca_text_str(&text, " in ");
    cca_text_u64(&text, holder->blocks);
    cca_text_str(&text, holder->blocks == 1 ? " block, " : " blocks, the oldest ");
    put_age(&text, holder->oldest_ns, now_ns);
    if (model->mark_ns != 0) {
        cca_text_str(&text, ", since the mark ");
        cca_text_size(&text, holder->marked_bytes);
        cca_text_str(&text, " in ");
        cca_text_u64(&text, holder->marked_blocks);
    }
    cca_text_str(&text, ": ");
    cca_top_stacks_describe(model, holder->stack, FRAMES_MAX, &text);
    buf[text.len] = '\n';
    buf[text.len + 1] = '\0';
    cca_log_text(buf);
}

static void print_rest(int device, size_t stacks, uint64_t bytes)
{
    char buf[LINE_BYTES], size_buf[32];
    struct cca_text size;

    cca_text_init(&size, size_buf, sizeof(size_buf));
    cca_text_size(&size, bytes);
    cca_format(buf, sizeof(buf), "cca: device %d: leaked %s more from %zu other places\n", device,
               size_buf, stacks);
    cca_log_text(buf);
}

void cca_leaks_print(struct cca_model *model)
{
    uint64_t now_ns = cca_clock_ns();

    for (size_t d = 0; d < model->device_count; d++) {
        int device = model->devices[d].ordinal;
        uint64_t rest = 0;
        size_t count = 0;
        const struct cca_holder *holders = cca_top_stacks(model, device, &count);

        for (size_t i = 0; holders != NULL && i < count; i++) {
            if (i < LINES_MAX) {
                print_holder(model, device, &holders[i], now_ns);
            } else {
                rest += holders[i].bytes;
            }
        }
        if (holders != NULL && count > LINES_MAX) {
            print_rest(device, count - LINES_MAX, rest);
        }
    }
}
