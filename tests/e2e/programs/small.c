/* SPDX-License-Identifier: MIT */
/* A library that does nothing, to be loaded by forkbusy.c. */
__attribute__((visibility("default"))) int small_library = 1;
