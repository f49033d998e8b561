/* SPDX-License-Identifier: MIT */
/* When the library is loaded and sees nothing although the program used CUDA. */
#ifndef CCA_PRELOAD_UNSEEN_H
#define CCA_PRELOAD_UNSEEN_H

/* At the end of the process, from the destructor: one line when a context of the driver is in use
 * (or was, by a driver that has shut down already) and no call ever came by a door. Cheap in
 * processes without a driver. */
void cca_unseen_report(void);

/* A look-up of a driver function came by: whoever made it is seen. */
void cca_unseen_note_look_up(void);

#endif
