/* server/helper/kept.h -- what a helper process leaves to the next one.
 *
 *   child that reads the configuration --names--> helper
 *                                      --names--> guardian --fork--> next helper
 *
 * Only such a child adds to it, and only what it has read from the configuration.  A server that
 * kills its helper thus gains no name, and loses none.
 */
#ifndef SERVER_HELPER_KEPT_H
#define SERVER_HELPER_KEPT_H

#include <glib.h>
#include "server/helper/helper.h"

struct helper_kept {
	GPtrArray *names; /* struct helper_name, oldest first */
	uint32_t load_ms;
	char pidfile[HELPER_NAME_MAX]; /* removed at the end if it has the server's number; or "" */
};

void helper_kept_init(struct helper_kept *);
struct helper_name *helper_kept_find(const struct helper_kept *, enum helper_kind,
    const char *name);
/* Copies it.  HELPER_LOAD: the deadline of the next load; HELPER_REMOVE_PIDFILE: the pid file. */
void helper_keep(struct helper_kept *, const struct helper_name *);

#endif
