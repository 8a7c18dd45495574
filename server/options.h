/* server/options.h -- the command line of accel-server: lighttpd's letters, and long names. */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <stdbool.h>

#include "base/option.h"

struct options {
	const char *file; /* NULL: not given */
	unsigned test;    /* -t: 1; -tt: 2, which is the same */
	bool print;       /* print the configuration as the server reads it */
	bool translate;   /* print it in the form of proxy-core */
	bool version;
	bool features;
	bool one;       /* one request on standard input, then exit */
	bool daemon;    /* go to the background when ready */
	bool until_eof; /* exit at the end of standard input */
	enum {
		MANUAL_NONE,
		MANUAL_CONF,
		MANUAL_CONF_ROFF,
		MANUAL_PROGRAM,
		MANUAL_PROGRAM_ROFF,
		MANUAL_LIGHTTPD, /* from here on as Markdown */
		MANUAL_EVENTS
	} manual;
};

extern const struct command options_command;
void manual_conf(struct manpage *);
void manual_program(struct manpage *);
void manual_lighttpd(struct buf *); /* doc/lighttpd.md */

/* OPTIONS_RUN, or the exit status: see base/option.h. */
int options_read(char **argv, struct options *);

#endif
