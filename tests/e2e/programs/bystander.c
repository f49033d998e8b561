/* SPDX-License-Identifier: MIT */
/* A library with a name that says who is in the process, and nothing in it. */
__attribute__((visibility("default"))) int cca_test_bystander = 1;
