/* SPDX-License-Identifier: MIT */
#include "preload/stream_key.h"

#include <stdatomic.h>

#include "base/compiler.h"

/* Two layouts: bit 63 tells a thread's own stream, the slot is below it.
 *   other streams  0  slot:6   at 48                 id:47 at 0, bit 47 instead of id 0
 *   per thread     1  slot:6   at 57  thread:28 at 29  id:29 at 0 */
enum { ID_BITS = 47, SLOT_SHIFT = 48, OWN_ID_BITS = 29, THREAD_BITS = 28, OWN_SLOT_SHIFT = 57 };

bool cca_stream_key(uint64_t id, int slot, uint32_t thread, cca_key *key_out)
{
    cca_key key;
    if (slot < 0 || slot >= CCA_HEAPS_MAX || id >> (thread != 0 ? OWN_ID_BITS : ID_BITS) != 0 ||
        thread >> THREAD_BITS != 0) {
        return false;
    }
    if (thread != 0) {
        key = (cca_key)1 << 63 | (cca_key)slot << OWN_SLOT_SHIFT | (cca_key)thread << OWN_ID_BITS |
              id;
    } else {
        key = (cca_key)slot << SLOT_SHIFT | (id != 0 ? id : (cca_key)1 << ID_BITS);
    }
    if (key == CCA_KEY_READY) {
        return false;
    }
    *key_out = key;
    return true;
}

uint32_t cca_stream_thread(void)
{
    static _Atomic uint32_t last;
    static CCA_THREAD_LOCAL uint32_t mine;
    if (CCA_UNLIKELY(mine == 0)) {
        mine = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    }
    return mine;
}
