/* SPDX-License-Identifier: MIT */
#include "alloc/gate.h"

#include "base/check.h"
#include "base/defect.h"

void cca_gate_init(struct cca_gate *gate)
{
    pthread_rwlock_init(&gate->lock, NULL);
    atomic_store(&gate->captures, 0);
}

bool cca_gate_enter(struct cca_gate *gate)
{
    if (cca_gate_is_closed(gate)) {
        return false;
    }
    pthread_rwlock_rdlock(&gate->lock);
    if (cca_gate_is_closed(gate)) {
        pthread_rwlock_unlock(&gate->lock);
        return false;
    }
    return true;
}

void cca_gate_leave(struct cca_gate *gate)
{
    pthread_rwlock_unlock(&gate->lock);
}

void cca_gate_close(struct cca_gate *gate)
{
    atomic_fetch_add(&gate->captures, 1);
    pthread_rwlock_wrlock(&gate->lock);
    pthread_rwlock_unlock(&gate->lock);
}

void cca_gate_open(struct cca_gate *gate)
{
    unsigned before = atomic_fetch_sub(&gate->captures, 1);
    CCA_ASSERT(before > 0);
    (void)before;
}

bool cca_gate_is_closed(const struct cca_gate *gate)
{
    return atomic_load(&gate->captures) != 0 && !CCA_DEFECT(captures_close_nothing);
}
