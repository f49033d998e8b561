/* SPDX-License-Identifier: MIT */
/* Deliberate defects, to prove that the rules would notice. SIM_DEFECT(name) is 0, and 1 in a build
 * with -DSIM_DEFECT_name=1; ../mutation/run.py makes such builds, one defect each. */
#ifndef SIM_DEFECT_H
#define SIM_DEFECT_H

#define SIM_DEFECT(name)             SIM_DEFECT_VALUE(SIM_DEFECT_##name)
#define SIM_DEFECT_VALUE(value)      SIM_DEFECT_PASTE(value)
#define SIM_DEFECT_PASTE(value)      SIM_DEFECT_PICK(SIM_DEFECT_IS_##value)
#define SIM_DEFECT_PICK(zero)        SIM_DEFECT_SECOND(zero 1, 0, 0)
#define SIM_DEFECT_IS_1              0,
#define SIM_DEFECT_SECOND(a, b, ...) (b)

#endif
