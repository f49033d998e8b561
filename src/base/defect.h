/* SPDX-License-Identifier: MIT */
/* Deliberate defects in what keeps reuse safe, to prove that the tests would notice.
 * CCA_DEFECT(name) is 0, and 1 in a build with -DCCA_DEFECT_name=1; tests/e2e/test_defects.py makes
 * such builds, one defect each. */
#ifndef CCA_BASE_DEFECT_H
#define CCA_BASE_DEFECT_H

#define CCA_DEFECT(name)             CCA_DEFECT_VALUE(CCA_DEFECT_##name)
#define CCA_DEFECT_VALUE(value)      CCA_DEFECT_PASTE(value)
#define CCA_DEFECT_PASTE(value)      CCA_DEFECT_PICK(CCA_DEFECT_IS_##value)
#define CCA_DEFECT_PICK(zero)        CCA_DEFECT_SECOND(zero 1, 0, 0)
#define CCA_DEFECT_IS_1              0,
#define CCA_DEFECT_SECOND(a, b, ...) (b)

#endif
