/* SPDX-License-Identifier: MIT */
#include "rule.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOT_MEASURED = 77, VIOLATION = 97, LIMIT_S = 60 };

static struct rule *rules;

/* Constructors of one file run from its first to its last. */
void rule_add(struct rule *rule)
{
    struct rule **link = &rules;

    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = rule;
}

void rule_needs(int condition)
{
    if (!condition) {
        _exit(NOT_MEASURED);
    }
}

CUcontext rule_start(int device)
{
    CUcontext context;
    int count;

    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    rule_needs(device < count);
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    return context;
}

static void CUDART_CB wait_at_gate(void *gate)
{
    sem_wait(&((struct rule_gate *)gate)->key);
}

void rule_close(struct rule_gate *gate, cudaStream_t stream)
{
    sem_init(&gate->key, 0, 0);
    gate->is_open = 0;
    OK(cudaLaunchHostFunc(stream, wait_at_gate, gate));
}

void rule_open(struct rule_gate *gate)
{
    __atomic_store_n(&gate->is_open, 1, __ATOMIC_SEQ_CST);
    sem_post(&gate->key);
}

int rule_is_open(struct rule_gate *gate)
{
    return __atomic_load_n(&gate->is_open, __ATOMIC_SEQ_CST);
}

static void *open_after_a_moment(void *gate)
{
    struct timespec moment = {0, 30000000};

    nanosleep(&moment, NULL);
    rule_open(gate);
    return NULL;
}

void rule_open_soon(struct rule_gate *gate)
{
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, open_after_a_moment, gate), 0);
    pthread_detach(thread);
}

int rule_is_held(cudaStream_t stream)
{
    int is_held = 1;

    for (int i = 0; i < 30 && is_held; i++) {
        usleep(1000);
        is_held = cudaStreamQuery(stream) == cudaErrorNotReady;
    }
    cudaGetLastError();
    return is_held;
}

int rule_first_byte(const void *p)
{
    cudaStream_t stream;
    unsigned char byte = 0;
    void *pinned;

    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMallocHost(&pinned, 1));
    OK(cudaMemcpyAsync(pinned, p, 1, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    memcpy(&byte, pinned, 1);
    OK(cudaStreamDestroy(stream));
    return byte;
}

static int is_simulated(void)
{
    return dlsym(RTLD_DEFAULT, "simcuda_violations") != NULL;
}

/* The rule's process: its exit status, or 128 and the signal. */
static int run(const struct rule *rule, const char *more)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        char *variables = strdup(rule->variables != NULL ? rule->variables : "");
        char *state;
        for (char *word = strtok_r(variables, " ", &state); word != NULL;
             word = strtok_r(NULL, " ", &state)) {
            putenv(word);
        }
        if (more != NULL) {
            putenv((char *)more);
        }
        execl("/proc/self/exe", "rule", "--here", rule->area, rule->name, (char *)NULL);
        _exit(126);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return 127;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int driver_version(void)
{
    int version = 0;

    cuDriverGetVersion(&version);
    return version;
}

/* is_once: in real time alone. */
static const char *judge(const struct rule *rule, int is_once)
{
    static const char *const times[] = {NULL, "SIMCUDA_TIME=virtual", "SIMCUDA_KERNEL_US=2000"};
    int wanted = (rule->flags & RULE_WRONG) != 0 ? VIOLATION : 0;
    int is_timed = (rule->flags & (RULE_WRONG | RULE_RIGHT)) != 0;

    if (((rule->flags & (RULE_WRONG | RULE_SIMULATED)) != 0 && !is_simulated()) ||
        rule_driver_needed(rule) > driver_version()) {
        return "not measured";
    }
    for (int i = 0; i < (is_timed && is_simulated() && !is_once ? 3 : 1); i++) {
        int status = run(rule, times[i]);
        if (status == NOT_MEASURED) {
            return "not measured";
        }
        if (status != wanted) {
            printf("# exit status %d, expected %d %s\n", status, wanted,
                   times[i] != NULL ? times[i] : "");
            return "differs";
        }
    }
    return "agrees";
}

/* Does the rule's program do what it should over a driver of that version? */
static int agrees_with(const struct rule *rule, int driver)
{
    char variable[32];

    snprintf(variable, sizeof(variable), "SIMCUDA_DRIVER=%d.%d", driver / 1000, driver % 1000 / 10);
    return run(rule, variable) == ((rule->flags & RULE_WRONG) != 0 ? VIOLATION : 0);
}

/* Is what the rule needs the first version that will do? */
static const char *judge_need(const struct rule *rule)
{
    int needed = rule_driver_needed(rule);

    if (needed == 0) {
        return "not measured";
    }
    return agrees_with(rule, needed) && !agrees_with(rule, needed - 10) ? "agrees" : "differs";
}

static void print_row(const struct rule *rule)
{
    printf("| %s.%s | %s |%s\n", rule->area, rule->name, rule->source,
           (rule->flags & RULE_WRONG) != 0 ? " violation |" : " |");
}

static int run_here(const char *area, const char *name)
{
    for (struct rule *rule = rules; rule != NULL; rule = rule->next) {
        if (strcmp(rule->area, area) == 0 && strcmp(rule->name, name) == 0) {
            alarm(LIMIT_S);
            rule->check();
            return 0;
        }
    }
    return 125;
}

/* Is the rule one of those asked for: areas, or area.name; none means all? */
static int is_wanted(const struct rule *rule, int count, char **wanted)
{
    char id[256];

    snprintf(id, sizeof(id), "%s.%s", rule->area, rule->name);
    for (int i = 0; i < count; i++) {
        if (strcmp(wanted[i], rule->area) == 0 || strcmp(wanted[i], id) == 0) {
            return 1;
        }
    }
    return count == 0;
}

static const char *const usage =
    "rules [--table | --once | --stop | --needs] [AREA | AREA.NAME]...\n"
    "  --table   lists the rules for the documentation\n"
    "  --once    in real time alone\n"
    "  --stop    the first difference is enough\n"
    "  --needs   judges the versions of the driver in needs.c instead of the rules\n";

int main(int argc, char **argv)
{
    unsigned number = 0;
    unsigned failures = 0;
    const char *mode = argc > 1 && strncmp(argv[1], "--", 2) == 0 ? argv[1] : "";
    int is_table = strcmp(mode, "--table") == 0;
    int is_needs = strcmp(mode, "--needs") == 0;
    int is_once = strcmp(mode, "--once") == 0;
    int is_stopping = strcmp(mode, "--stop") == 0;
    int first = 1 + (*mode != '\0');

    if (argc == 4 && strcmp(mode, "--here") == 0) {
        return run_here(argv[2], argv[3]);
    }
    if (*mode != '\0' && !is_table && !is_needs && !is_once && !is_stopping) {
        fputs(usage, stderr);
        return 2;
    }
    for (struct rule *rule = rules; rule != NULL; rule = rule->next) {
        if (!is_wanted(rule, argc - first, argv + first)) {
            continue;
        }
        if (is_table) {
            print_row(rule);
            continue;
        }
        const char *verdict = is_needs ? judge_need(rule) : judge(rule, is_once);
        int is_bad = strcmp(verdict, "differs") == 0;
        printf("%s %u - rule %s.%s: %s%s\n", is_bad ? "not ok" : "ok", ++number, rule->area,
               rule->name, verdict, strcmp(verdict, "not measured") == 0 ? " # SKIP" : "");
        fflush(stdout);
        failures += (unsigned)is_bad;
        if (is_bad && is_stopping) {
            break;
        }
    }
    if (!is_table) {
        printf("1..%u\n", number);
    }
    return failures != 0;
}
