/* server/config/check/spawn.h -- proxy-core.spawn: applications that the helper process starts.
 *
 * A line is how server and helper name one of them.  It has everything that starts it, so equal
 * lines are the same application, and a changed one is another:
 *
 *   ADDRESS TAB BACKLOG TAB SIGNAL TAB COMMAND [TAB "E" NAME=VALUE | TAB "C" NAME]...
 *
 * Without "C" the application gets the whole environment of the helper.
 */
#ifndef SERVER_CONFIG_SPAWN_H
#define SERVER_CONFIG_SPAWN_H

#include "server/config/config.h"

#define SPAWN_LINE_MAX    1024 /* bytes, with the NUL */
#define SPAWN_BACKLOG     1024 /* default of "backlog", as in lighttpd */
#define SPAWN_BACKLOG_MAX 65535

/* The line of a member of proxy-core.spawn.  NULL, or what is wrong with it, in words. */
const char *spawn_line(const struct conf_pair *, char line[SPAWN_LINE_MAX]);

struct spawn { /* slices of the line */
	struct text address, command;
	int backlog, signal;
	struct text rest; /* E and C */
};
bool spawn_parse(struct text line, struct spawn *);
/* The next of *rest: kind 'E' or 'C'.  False: no more. */
bool spawn_next(struct text *rest, char *kind, struct text *value);

#endif
