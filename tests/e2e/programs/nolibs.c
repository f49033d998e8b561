/* SPDX-License-Identifier: MIT */
/* Linked without any shared library: no loader, no preload. */
#include <stdio.h>

int main(void)
{
    printf("static\n");
    return 9;
}
