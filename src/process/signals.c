/* SPDX-License-Identifier: MIT */
/* Handlers only leave a word for the dump thread and wake it. Only the one for SIGABRT waits, since
 * the process is over once it returns. */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "process/state.h"

enum { ABORT_WAIT_MS = 2000 };

/* Values of sigqueue on the control signal. */
enum { CONTROL_TRIM = 1, CONTROL_RESET_PEAKS = 2 };

/* A vfork child runs in its parent's memory. */
static bool is_parent(const struct cca_process *process)
{
    return getpid() == process->identity.pid;
}

/* The handler that ours took the place of. */
static void call_chained(const struct sigaction *before, int number, siginfo_t *info, void *context)
{
    if ((before->sa_flags & SA_SIGINFO) != 0) {
        before->sa_sigaction(number, info, context);
    } else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(number);
    }
}

static void on_dump_signal(int number, siginfo_t *info, void *context)
{
    struct cca_process *process = cca_process_state();
    int saved_errno = errno;

    if (is_parent(process)) {
        (void)cca_dump_thread_ask(process, CCA_WANT_DUMP);
    }
    call_chained(&process->dumps.signals[0].before, number, info, context);
    errno = saved_errno;
}

static void on_control_signal(int number, siginfo_t *info, void *context)
{
    struct cca_process *process = cca_process_state();
    int saved_errno = errno;
    int value = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;

    (void)number, (void)context;
    if (is_parent(process) && value == CONTROL_TRIM) {
        (void)cca_dump_thread_ask(process, CCA_WANT_TRIM);
    } else if (is_parent(process) && value == CONTROL_RESET_PEAKS) {
        (void)cca_dump_thread_ask(process, CCA_WANT_RESET_PEAKS);
    }
    errno = saved_errno;
}

/* The action is the default one again (SA_RESETHAND): the dump thread ends the process by it, and a
 * second signal does so at once. */
static void on_term(int number, siginfo_t *info, void *context)
{
    struct cca_process *process = cca_process_state();
    int saved_errno = errno;

    (void)info, (void)context;
    if (!is_parent(process) || !cca_dump_thread_ask(process, CCA_WANT_TERM_DUMP)) {
        raise(number);
    }
    errno = saved_errno;
}

static void on_abort(int number, siginfo_t *info, void *context)
{
    struct cca_process *process = cca_process_state();
    unsigned done = atomic_load(&process->dumps.aborts_done);

    (void)info, (void)context;
    if (is_parent(process) && cca_dump_thread_ask(process, CCA_WANT_ABORT_DUMP)) {
        for (int i = 0; i < ABORT_WAIT_MS && atomic_load(&process->dumps.aborts_done) == done;
             i++) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
    raise(number); /* comes when this handler returns, and finds the default action */
}

typedef void (*handler_fn)(int, siginfo_t *, void *);

/* In the order of cca_dumps.signals. */
static const struct {
    handler_fn handler;
    int flags;
} kinds[CCA_SIGNALS_MAX] = {
    {on_dump_signal, SA_RESTART},
    {on_control_signal, SA_RESTART},
    {on_term, SA_RESTART | SA_RESETHAND},
    {on_abort, SA_RESETHAND},
};

static bool is_handler(const struct sigaction *action, handler_fn handler)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handler;
}

static bool is_default(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
}

/* A thread with an alternate stack has it for a reason. */
static bool install(struct cca_process *process, int kind, int number, bool is_forced)
{
    struct cca_installed_signal *installed = &process->dumps.signals[kind];
    struct sigaction action = {.sa_sigaction = kinds[kind].handler,
                               .sa_flags = kinds[kind].flags | SA_SIGINFO | SA_ONSTACK};

    if (sigaction(number, NULL, &installed->before) != 0 ||
        (!is_default(&installed->before) && !is_forced)) {
        return false;
    }
    if (is_forced) {
        action.sa_mask = installed->before.sa_mask;
    } else {
        sigemptyset(&action.sa_mask);
    }
    installed->number = number;
    if (sigaction(number, &action, NULL) != 0) {
        installed->number = 0;
        return false;
    }
    return true;
}

bool cca_signals_install(struct cca_process *process)
{
    const struct cca_config *config = &process->config;
    bool is_ours = true;

    if (config->dump_signal != 0 && (config->dump_on & CCA_DUMP_ON_SIGNAL) != 0) {
        is_ours = install(process, 0, config->dump_signal, config->dump_signal_force);
    }
    if (config->control_signal != 0 && config->control_signal != config->dump_signal) {
        (void)install(process, 1, config->control_signal, false);
    }
    if ((config->dump_on & CCA_DUMP_ON_TERM) != 0) {
        (void)install(process, 2, SIGTERM, false);
    }
    if ((config->dump_on & CCA_DUMP_ON_ABORT) != 0) {
        (void)install(process, 3, SIGABRT, false);
    }
    return is_ours;
}

bool cca_signals_are_ours(const struct cca_process *process)
{
    int number = process->dumps.signals[0].number;
    struct sigaction now;

    return number == 0 ||
           (sigaction(number, NULL, &now) == 0 && is_handler(&now, kinds[0].handler));
}

void cca_signals_remove(struct cca_process *process)
{
    for (int i = 0; i < CCA_SIGNALS_MAX; i++) {
        struct cca_installed_signal *installed = &process->dumps.signals[i];
        struct sigaction now;

        if (installed->number != 0 && sigaction(installed->number, NULL, &now) == 0 &&
            is_handler(&now, kinds[i].handler)) {
            sigaction(installed->number, &installed->before, NULL);
        }
        installed->number = 0;
    }
}
