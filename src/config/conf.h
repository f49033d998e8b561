/* SPDX-License-Identifier: MIT */
/* Settings as one string in PyTorch's grammar: "key:value,key:[a:b,c:d],...". White space is
 * ignored, booleans are exactly True or False. */
#ifndef CCA_CONFIG_CONF_H
#define CCA_CONFIG_CONF_H

#include "base/compiler.h"
#include "config/config.h"

/* Applies a string to the settings. First, as in PyTorch, max_split_size, max_non_split_rounding,
 * roundup_power2_divisions and garbage_collection_threshold go back to their defaults; everything
 * else keeps its value unless given. An item that is wrong, unknown or not in this version is left
 * out and complained of under the name CCA_CONF, the others count. -EINVAL when an item was wrong
 * or unknown, -E2BIG (nothing changed) when the string is too long. */
int cca_conf_apply(struct cca_config *config, const char *text, cca_config_complaint_fn complain,
                   void *user) CCA_MUST_CHECK;

/* The same, all or nothing: where an item was wrong nothing has changed. The text becomes the one
 * that is shown. */
int cca_conf_change(struct cca_config *config, const char *text, cca_config_complaint_fn complain,
                    void *user) CCA_MUST_CHECK;

#endif
