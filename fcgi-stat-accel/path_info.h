/* fcgi-stat-accel/path_info.h -- the file in a name that goes on after it.
 *
 * lighttpd sends /a/file for the URL /a/file/info, and "/info" is a path info to it.  A look-up of
 * the whole name ends with ENOTDIR and makes no byte warm, so one client could have each cold file
 * read in the event loop.  The file is found by halves: a longer name gives ENOTDIR, a shorter one
 * is a directory.
 */
#ifndef FCGI_STAT_ACCEL_PATH_INFO_H
#define FCGI_STAT_ACCEL_PATH_INFO_H

#include <glib.h>
#include <stdbool.h>
#include "files/warm/warm.h"

/* Starts as {0}.  Lengths in the name: one that is a directory, one that is longer than the file,
 * and the next to look up; at 0: the whole name. */
struct path_info {
	size_t dir, behind, at;
};

/* found: of the first s->at bytes of name.  True: look up the new s->at bytes; at most two look-ups
 * for each bit of the length. */
bool path_info_next(struct path_info *s, const GString *name, const struct warm_found *found);

#endif
