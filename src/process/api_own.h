/* SPDX-License-Identifier: MIT */
/* The two functions that the library exports under the names of inline ones of include/cca, which a
 * file that defines them can therefore not include. */
#ifndef CCA_PROCESS_API_OWN_H
#define CCA_PROCESS_API_OWN_H

#include <stddef.h>

void *cca_api_my_malloc(ptrdiff_t bytes, int device, void *stream);
void cca_api_my_free(void *ptr, ptrdiff_t bytes, int device, void *stream);

#endif
