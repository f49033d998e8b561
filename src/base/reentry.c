/* SPDX-License-Identifier: MIT */
#include "base/reentry.h"

CCA_THREAD_LOCAL int cca_reentry_depth;
