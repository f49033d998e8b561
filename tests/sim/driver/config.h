/* SPDX-License-Identifier: MIT */
/* The SIMCUDA_ variables, read once at load. README.md lists them. */
#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAX_DEVICES 8

enum sim_violation_action { SIM_VIOLATION_FATAL, SIM_VIOLATION_REPORT, SIM_VIOLATION_IGNORE };

struct sim_config {
    int device_count;
    size_t memory_bytes;
    size_t keep_bytes;
    int driver_version;
    bool is_integrated;
    bool is_virtual;
    uint64_t seed;
    uint64_t progress;
    uint64_t kernel_ns;
    uint64_t copy_ns;
    size_t payload_max_bytes;
    enum sim_violation_action violations;
    bool is_args_checked;
    bool is_poisoning;
    bool is_recording;
    bool is_tracing_arguments;
    const char *without;
    const char *fail;
    const char *slow;
    const char *log_path;
    const char *trace_path;
};

extern struct sim_config sim_config;

void sim_config_read(void);
/* "16G", "512M", "4096" to bytes; fallback when there is no number. */
size_t sim_config_size(const char *text, size_t fallback);

#endif
