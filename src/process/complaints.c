/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/format.h"
#include "base/log.h"
#include "process/state.h"

/* A value is quoted up to this length: the remark behind it is what must not be cut off. */
enum { QUOTED_MAX = 80 };

void cca_complaints_add(void *complaints, const char *name, const char *value, const char *used)
{
    struct cca_complaints *self = complaints;
    size_t value_len = strlen(value);
    struct cca_text line;

    if (self->count == CCA_COMPLAINTS_MAX) {
        self->dropped++;
        return;
    }
    cca_text_init(&line, self->lines[self->count++], CCA_COMPLAINT_BYTES);
    cca_text_str(&line, name);
    cca_text_str(&line, " '");
    cca_text_bytes(&line, value, value_len <= QUOTED_MAX ? value_len : QUOTED_MAX);
    cca_text_str(&line, value_len <= QUOTED_MAX ? "': " : "...': ");
    cca_text_str(&line, used);
}

void cca_complaints_print(const struct cca_complaints *complaints)
{
    for (int i = 0; i < complaints->count; i++) {
        cca_log(CCA_LOG_WARN, "%s", complaints->lines[i]);
    }
    if (complaints->dropped > 0) {
        cca_log(CCA_LOG_WARN, "%d more variables were not understood", complaints->dropped);
    }
}
