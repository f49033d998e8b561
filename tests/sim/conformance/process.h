/* SPDX-License-Identifier: MIT */
/* Rules that need two processes. The child is forked before CUDA is used; the two talk over a
 * socket, in messages of a fixed size. */
#ifndef SIM_RULE_PROCESS_H
#define SIM_RULE_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* Runs the child's part in a new process, which ends with it; the parent's part comes after. */
pid_t process_split(void (*child_part)(void));
void process_tell(const void *message, size_t bytes);
void process_hear(void *message, size_t bytes);
void process_tell_fd(int fd);
int process_hear_fd(void);
/* The child must end well. */
void process_end(pid_t child);

#endif
