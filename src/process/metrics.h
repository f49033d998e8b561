/* SPDX-License-Identifier: MIT */
/* The statistics as Prometheus text, for a node exporter's text file collector or the like. */
#ifndef CCA_PROCESS_METRICS_H
#define CCA_PROCESS_METRICS_H

#include "base/sink.h"

struct cca_process;

/* Writes the file of the settings anew and puts it in the place of the one before in one step. On
 * the dump thread or at exit, the claim on dumps held. One line on the first failure. */
void cca_metrics_write(struct cca_process *process);

/* The text; errors stick in the sink. */
void cca_metrics_put(struct cca_process *process, struct cca_sink *sink);

#endif
