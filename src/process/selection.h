/* SPDX-License-Identifier: MIT */
/* Whom the library is meant for: CCA_PROGRAMS and CCA_CHILDREN. Pure but for what is handed in;
 * used by cca_process_load alone, before there is a second thread. No malloc. */
#ifndef CCA_PROCESS_SELECTION_H
#define CCA_PROCESS_SELECTION_H

#include <stdbool.h>

/* Whether a list of globs ("train*,!*.sh", commas or white space between) chooses a program that
 * is known by two names: that of its file and that by which it was called (a link, a script's
 * interpreter). A glob behind `!` excludes, and wins; without any other glob all the rest is
 * chosen. A glob that is too long matches nothing. */
bool cca_selection_matches(const char *globs, const char *file_name, const char *called_name);

/* Takes the entry that means `library` (the path under which the loader knows it) out of a value
 * of LD_PRELOAD, in place, and nothing else; true when one was there. */
bool cca_selection_remove_entry(char *preload, const char *library);

#endif
