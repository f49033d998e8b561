/* SPDX-License-Identifier: MIT */
/* How a program with CUDA may live and end, one way chosen by the argument. What the program sees
 * of CUDA it prints. */
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#include "program.h"

extern char **environ;

static void *kept; /* freed by whoever comes last */

static int status_of(pid_t child)
{
    int status = 0;
    if (child <= 0 || waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Memory in use before and after, with the same bytes in it. */
static void allocate_and_check(int value)
{
    void *p = NULL;
    MUST(cudaMalloc(&p, 1 << 20));
    MUST(cudaMemset(p, value, 1 << 20));
    printf("filled: %s\n", all_bytes_are(p, 1 << 20, value) ? "right" : "WRONG");
    MUST(cudaFree(p));
}

/* The child of a program with a context cannot use CUDA; what it does try must not hurt. */
static void in_child(const char *end)
{
    void *p = NULL;
    printf("child: malloc %d, free %d, async %d, synchronize %d\n", (int)cudaMalloc(&p, 4096),
           (int)cudaFree(kept), (int)cudaMallocAsync(&p, 4096, NULL), (int)cudaDeviceSynchronize());
    if (strcmp(end, "_exit") == 0) {
        _exit(3);
    }
    exit(3);
}

static void fork_with_context(const char *end)
{
    pid_t child = fork();
    if (child == 0) {
        in_child(end);
    }
    printf("child ended: %d\n", status_of(child));
    allocate_and_check(7);
}

/* Children that exit at once. */
static void have_children(int count)
{
    pid_t children[16];
    int ended = 0;
    MUST(cudaFree(kept));
    kept = NULL;
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            exit(0);
        }
    }
    for (int i = 0; i < count; i++) {
        ended += status_of(children[i]) == 0;
    }
    printf("%d children ended well\n", ended);
}

/* Children of a program that has used CUDA, which are other programs or none. */
static void start_others(void)
{
    static char name[] = "/bin/sh", flag[] = "-c", command[] = "exit 4";
    char *const shell[] = {name, flag, command, NULL};
    pid_t child = vfork();
    if (child == 0) {
        _exit(2);
    }
    printf("vfork and _exit: %d\n", status_of(child));
    child = vfork();
    if (child == 0) {
        execv(shell[0], shell);
        _exit(127);
    }
    printf("vfork and exec: %d\n", status_of(child));
    child = -1;
    if (posix_spawn(&child, shell[0], NULL, NULL, shell, environ) != 0) {
        printf("no spawn\n");
    }
    printf("posix_spawn: %d\n", status_of(child));
    printf("system: %d\n", WEXITSTATUS(system("exit 5")));
    allocate_and_check(8);
}

/* A first fork before CUDA is used: the child is the program. */
static void become_daemon(void)
{
    pid_t child = fork();
    if (child != 0) {
        exit(child > 0 ? 0 : 1);
    }
    if (setsid() < 0 || chdir(".") != 0) {
        exit(1);
    }
    allocate_and_check(9);
    FILE *file = fopen("daemon", "w");
    if (file != NULL) {
        fprintf(file, "done\n");
        fclose(file);
    }
}

static pthread_key_t key;

static void free_own(void *memory)
{
    if (cudaFree(memory) != cudaSuccess) {
        printf("WRONG: not freed at the end of a thread\n");
    }
}

static void *use_and_leave(void *unused)
{
    void *p = NULL;
    (void)unused;
    MUST(cudaMalloc(&p, 3 << 20));
    MUST(cudaMemset(p, 1, 3 << 20));
    if (pthread_setspecific(key, p) != 0) {
        return NULL;
    }
    pthread_exit(NULL);
}

static void end_threads(void)
{
    pthread_key_create(&key, free_own);
    for (int i = 0; i < 50; i++) {
        pthread_t threads[4];
        for (int j = 0; j < 4; j++) {
            pthread_create(&threads[j], NULL, use_and_leave, NULL);
        }
        for (int j = 0; j < 4; j++) {
            pthread_join(threads[j], NULL);
        }
    }
    printf("200 threads came and went\n");
}

static void free_kept_at_exit(void)
{
    printf("at exit: free %d\n", (int)cudaFree(kept));
    kept = NULL;
}

/* After main, and after what atexit has registered later. */
__attribute__((destructor)) static void at_the_very_end(void)
{
    void *p = NULL;
    if (kept != NULL) {
        int malloc_code = (int)cudaMalloc(&p, 4096);
        printf("destructor: malloc %d, free %d, free %d\n", malloc_code, (int)cudaFree(p),
               (int)cudaFree(kept));
    }
}

static void *sleep_forever(void *unused)
{
    for (;;) {
        pause();
    }
    return unused;
}

static void end_by(const char *how)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_forever, NULL);
    if (strcmp(how, "atexit") == 0) {
        atexit(free_kept_at_exit);
        exit(11);
    } else if (strcmp(how, "exit") == 0) {
        exit(12);
    } else if (strcmp(how, "quick_exit") == 0) {
        at_quick_exit(free_kept_at_exit);
        quick_exit(13);
    } else if (strcmp(how, "_exit") == 0) {
        _exit(14);
    } else if (strcmp(how, "_Exit") == 0) {
        _Exit(15);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "kill") == 0) {
        kill(getpid(), SIGKILL);
    } else if (strcmp(how, "segv") == 0) {
        raise(SIGSEGV);
    } else if (strcmp(how, "main_ends") == 0) {
        pthread_cancel(thread);
        pthread_exit(NULL);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    if (strcmp(what, "daemon") == 0) {
        become_daemon();
        return 0;
    }
    MUST(cudaMalloc(&kept, 2 << 20));
    if (strcmp(what, "fork") == 0) {
        fork_with_context(how);
    } else if (strcmp(what, "family") == 0) {
        have_children(atoi(how) % 16);
    } else if (strcmp(what, "others") == 0) {
        start_others();
    } else if (strcmp(what, "exec") == 0) {
        execl(argv[0], argv[0], "threads", (char *)NULL);
        return 126;
    } else if (strcmp(what, "threads") == 0) {
        end_threads();
    } else if (strcmp(what, "end") == 0) {
        end_by(how);
        return 21;
    } else if (strcmp(what, "reset") == 0) {
        MUST(cudaDeviceReset());
        kept = NULL;
        allocate_and_check(6);
    }
    return 0;
}
