/* fcgi-stat-accel/options_text.h -- options.c and options_choose.c only: what stands on the command line, and what is made of it. */
#ifndef FCGI_STAT_ACCEL_OPTIONS_TEXT_H
#define FCGI_STAT_ACCEL_OPTIONS_TEXT_H

#include "fcgi-stat-accel/options.h"

/* As it was typed; NULL: not given. */
struct options_text {
	char	*mode, *dialect, *header, *encode, *path_from, *warm, *behind, *index, *siblings, *expires;
	char	*threads, *per_device, *queue, *deadline, *late, *remember, *slow;
	char	*address, *peer_users, *user, *status_path, *ping_path, *log, *timing, *check, *manual;
	char   **maps, **roots, **rest;
	gboolean etag, last_modified, allow_any, no_sandbox, version;
};

/* OPTIONS_RUN, or the exit status: a value is wrong, which has been reported.  *options points into *text. */
int  options_choose(const struct options_text *text, struct options *);
void options_choose_free(void);

#endif
