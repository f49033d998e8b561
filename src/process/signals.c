/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "process/state.h"

static void on_dump_signal(int signal_number)
{
    struct cca_process *process = cca_process_state();
    int saved_errno = errno;

    (void)signal_number;
    /* A vfork child runs in its parent's memory. */
    if (getpid() == process->identity.pid) {
        atomic_store_explicit(&process->dumps.signal_came, true, memory_order_release);
        sem_post(&process->dumps.wake);
    }
    errno = saved_errno;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == on_dump_signal;
}

bool cca_signals_install(struct cca_process *process)
{
    int number = process->config.dump_signal;
    struct sigaction action = {.sa_handler = on_dump_signal, .sa_flags = SA_RESTART}, before;

    if (number == 0 || (process->config.dump_on & CCA_DUMP_ON_SIGNAL) == 0) {
        return true;
    }
    if (sigaction(number, NULL, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0 ||
        before.sa_handler != SIG_DFL) {
        return false;
    }
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, NULL) != 0) {
        return false;
    }
    process->dumps.installed_signal = number;
    return true;
}

bool cca_signals_are_ours(const struct cca_process *process)
{
    struct sigaction now;

    return process->dumps.installed_signal == 0 ||
           (sigaction(process->dumps.installed_signal, NULL, &now) == 0 && is_ours(&now));
}

void cca_signals_remove(struct cca_process *process)
{
    int number = process->dumps.installed_signal;
    struct sigaction fallback = {.sa_handler = SIG_DFL}, now;

    if (number != 0 && sigaction(number, NULL, &now) == 0 && is_ours(&now)) {
        sigemptyset(&fallback.sa_mask);
        sigaction(number, &fallback, NULL);
    }
    process->dumps.installed_signal = 0;
}
