/* SPDX-License-Identifier: MIT */
#include "observe/event.h"

#include "base/compiler.h"

const char *cca_event_kind_name(enum cca_event_kind kind)
{
    static const char *const names[] = {
#define X(id, name, in_ring) [id] = name,
        CCA_EVENT_KINDS(X)
#undef X
    };

    return (unsigned)kind < CCA_ARRAY_LEN(names) ? names[kind] : "unknown";
}

const char *cca_api_name(enum cca_api api)
{
    static const char *const names[] = {
#define X(id, name) [id] = name,
        CCA_APIS(X)
#undef X
    };

    return (unsigned)api < CCA_ARRAY_LEN(names) ? names[api] : "";
}
