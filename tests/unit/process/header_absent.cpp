/* SPDX-License-Identifier: MIT */
#include "header_absent.c"
