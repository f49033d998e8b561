/* SPDX-License-Identifier: MIT */
/* Attributes and visibility marks; nothing else. */
#ifndef CCA_BASE_COMPILER_H
#define CCA_BASE_COMPILER_H

#include <stddef.h>

#define CCA_EXPORT                          __attribute__((visibility("default")))
#define CCA_PRINTF(fmt, args)               __attribute__((format(printf, fmt, args)))
#define CCA_MUST_CHECK                      __attribute__((warn_unused_result))
#define CCA_NOINLINE                        __attribute__((noinline))
#define CCA_COLD                            __attribute__((cold, noinline))
/* For what is inline so that constants of the caller's make most of it go away. */
#define CCA_ALWAYS_INLINE                   inline __attribute__((always_inline))
#define CCA_LIKELY(x)                       __builtin_expect(!!(x), 1)
#define CCA_UNLIKELY(x)                     __builtin_expect(!!(x), 0)

/* Thread-local storage that costs no call and no allocation: the library is always loaded at
 * program start, so the initial-exec model is safe. */
#define CCA_THREAD_LOCAL                    _Thread_local __attribute__((tls_model("initial-exec")))

#define CCA_ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))

/* The struct that holds `member` at `ptr`. */
#define CCA_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
