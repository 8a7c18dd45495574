/* base/events.h -- every event of the logs as a table: for doc/events.md, the manuals and tests.
 *
 * The calls of log_event() and log_limited() name events by literals; scripts/lint events compares
 * them with base/events.def.
 */
#ifndef BASE_EVENTS_H
#define BASE_EVENTS_H

#include "base/manpage.h"

struct event_info {
	const char *name;
	const char *who;   /* "server", "accel" or "both" */
	const char *level; /* "warn", or "error, warn" */
	const char *means;
	const char *next; /* what to do; "" for an event that only informs */
};

void events_manual(struct manpage *, const char *who); /* those of who, and of both */
void events_markdown(struct buf *);                    /* doc/events.md */

#endif
