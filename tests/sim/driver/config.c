/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

struct sim_config sim_config;

size_t sim_config_size(const char *text, size_t fallback)
{
    if (text == NULL || *text == '\0') {
        return fallback;
    }
    char *end;
    size_t value = strtoull(text, &end, 0);
    if (end == text) {
        return fallback;
    }
    switch (*end) {
    case 'k':
    case 'K': return value << 10;
    case 'm':
    case 'M': return value << 20;
    case 'g':
    case 'G': return value << 30;
    default: return value;
    }
}

static size_t number(const char *name, size_t fallback)
{
    return sim_config_size(getenv(name), fallback);
}

static bool is_set(const char *name, const char *value)
{
    const char *text = getenv(name);

    return text != NULL && strcmp(text, value) == 0;
}

/* "12.4" to 12040. */
static int version(const char *text)
{
    if (text == NULL || *text == '\0') {
        return CUDA_VERSION;
    }
    char *end;
    long major = strtol(text, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return (int)(major * 1000 + minor * 10);
}

void sim_config_read(void)
{
    size_t devices = number("SIMCUDA_DEVICES", 1);

    sim_config.device_count = devices > SIM_MAX_DEVICES ? SIM_MAX_DEVICES : (int)devices;
    sim_config.memory_bytes = number("SIMCUDA_MEM", (size_t)16 << 30) & ~(((size_t)2 << 20) - 1);
    sim_config.keep_bytes = number("SIMCUDA_KEEP", (size_t)1 << 30);
    sim_config.driver_version = version(getenv("SIMCUDA_DRIVER"));
    sim_config.is_integrated = number("SIMCUDA_INTEGRATED", 0) != 0;
    sim_config.is_virtual = is_set("SIMCUDA_TIME", "virtual");
    sim_config.seed = number("SIMCUDA_SEED", 1);
    sim_config.progress = number("SIMCUDA_VIRTUAL_PROGRESS", 0);
    sim_config.kernel_ns = number("SIMCUDA_KERNEL_US", 0) * 1000;
    sim_config.copy_ns = number("SIMCUDA_COPY_US", 0) * 1000;
    sim_config.payload_max_bytes = number("SIMCUDA_PAYLOAD_MAX", SIZE_MAX);
    sim_config.violations = is_set("SIMCUDA_VIOLATIONS", "report")   ? SIM_VIOLATION_REPORT
                            : is_set("SIMCUDA_VIOLATIONS", "ignore") ? SIM_VIOLATION_IGNORE
                                                                     : SIM_VIOLATION_FATAL;
    sim_config.is_args_checked = is_set("SIMCUDA_RACES", "args");
    sim_config.is_poisoning = is_set("SIMCUDA_FILL", "poison");
    sim_config.is_recording = !is_set("SIMCUDA_RECORD", "off");
    sim_config.without = getenv("SIMCUDA_WITHOUT");
    sim_config.fail = getenv("SIMCUDA_FAIL");
    sim_config.slow = getenv("SIMCUDA_SLOW");
    sim_config.log_path = getenv("SIMCUDA_LOG");
    sim_config.is_tracing_arguments = number("SIMCUDA_TRACE_ARGUMENTS", 0) != 0;
    sim_config.trace_path = getenv("SIMCUDA_TRACE");
}
