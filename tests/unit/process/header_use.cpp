/* SPDX-License-Identifier: MIT */
#include "header_use.c"
