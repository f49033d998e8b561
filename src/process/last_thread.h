/* SPDX-License-Identifier: MIT */
/* A process whose main thread has left by pthread_exit ends when its last thread does. A thread of
 * ours must not be that one for ever: it learns here when it is alone, and returns. Threads of
 * others, the driver's too, keep the process alive as they natively do. */
#ifndef CCA_PROCESS_LAST_THREAD_H
#define CCA_PROCESS_LAST_THREAD_H

#include <semaphore.h>
#include <stdbool.h>

/* Once, on the main thread: `wake` is posted when that thread leaves by pthread_exit. */
void cca_last_thread_watch(sem_t *wake);
bool cca_last_thread_main_has_ended(void);

/* Whether no thread but the calling one is alive. Opens files for the moment; no malloc. */
bool cca_last_thread_is_alone(void);

#endif
