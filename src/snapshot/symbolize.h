/* SPDX-License-Identifier: MIT */
/* From the ids of the stack table to named frames, each stack and each address once. */
#ifndef CCA_SNAPSHOT_SYMBOLIZE_H
#define CCA_SNAPSHOT_SYMBOLIZE_H

#include "base/compiler.h"
#include "observe/module_log.h"
#include "observe/stack_table.h"
#include "snapshot/model.h"

/* Gives every `stack` field of the model its final number and fills frames and stacks; lists the
 * modules unless the model has them. `log`: the modules that the stacks passed through, those that
 * were unloaded since included; NULL: all are where they are now. With names, a frame is called by
 * its function (C++ names demangled where the library was built so), else "library.so+0xoffset";
 * without, or outside every module, "0xaddress". Reads the modules' files; the caller holds no
 * lock. -ENOMEM: every stack is left out. */
int cca_symbolize_model(struct cca_model *model, const struct cca_stack_table *table,
                        struct cca_module_log *log, bool with_names) CCA_MUST_CHECK;

#endif
