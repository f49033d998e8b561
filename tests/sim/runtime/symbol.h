/* SPDX-License-Identifier: MIT */
/* What a program registers before main: code, kernels, variables. */
#ifndef RT_SYMBOL_H
#define RT_SYMBOL_H

#include "driver.h"

/* Where [offset, offset + count) of a registered variable lies on the current device. */
cudaError_t rt_symbol_address(const void *symbol, size_t offset, size_t count, char **address_out);
/* The kernel that a host function stands for; loads its code at the first use. */
cudaError_t rt_symbol_kernel(const void *function, CUkernel *kernel_out);
/* The host function that stands for the kernel, or the kernel itself when none does. */
const void *rt_symbol_of_kernel(CUkernel kernel);

#endif
