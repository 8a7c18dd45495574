/* server/helper/kept.h -- what a helper process leaves to the next one.
 *
 *   child that reads the configuration --names--> helper
 *                                      --names--> guardian --fork--> next helper
 *
 * Only such a child adds names, and only those of the configuration that it has read.  A server
 * that kills its helper thus gains no name, and loses none.
 *
 * Names of earlier configurations stay: draining generations have their logs open, and HUP reopens
 * them.  Bounds: a list has at most HELPER_NAMES_MAX names, or it is refused (work.c).  If there
 * are more in all, those of the last two lists stay.
 */
#ifndef SERVER_HELPER_KEPT_H
#define SERVER_HELPER_KEPT_H

#include <glib.h>
#include "server/helper/helper.h"

struct helper_kept {
	GPtrArray *names;  /* struct helper_name, the last one told comes last */
	GHashTable *set;   /* the same, by kind, list and name */
	uint64_t told;     /* names so far */
	uint64_t lists[2]; /* value of told where the last two lists began */
	uint32_t load_ms;
	char pidfile[HELPER_NAME_MAX]; /* removed at the end if it has the server's number; or "" */
};

void helper_kept_init(struct helper_kept *);
struct helper_name *helper_kept_find(const struct helper_kept *, enum helper_kind,
    const char *name);
/* The files of certificates of this list, by name, as long as there is place for it; free the
 * array, not the names.  The last list may be one that the server has refused. */
GPtrArray *helper_kept_certificates(const struct helper_kept *, uint64_t list);
/* Copies it.  HELPER_LOAD: the end of a list, with the deadline of the next load;
 * HELPER_REMOVE_PIDFILE: the pid file. */
void helper_keep(struct helper_kept *, const struct helper_name *);

/* Only as long as its name: there may be thousands.  Free it with g_free(). */
struct helper_name *helper_name_copy(const struct helper_name *);

#endif
