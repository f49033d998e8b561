/* SPDX-License-Identifier: MIT */
/* The version, stated here once; Meson reads it from this file. */
#ifndef CCA_VERSION_H
#define CCA_VERSION_H

#define CCA_VERSION_MAJOR  0
#define CCA_VERSION_MINOR  1
#define CCA_VERSION_PATCH  0
#define CCA_VERSION_STRING "0.1.0"

#endif
