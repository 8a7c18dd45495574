/* server/options.h -- the command line of accel-server: lighttpd's letters, and long names.
 *
 * Errors   options_parse() returns 0 to go on.  After a mistake it has written one line and a hint to stderr and
 *          returns 64, the status to exit with.  -h prints the help and exits with 0 by itself.
 * Owner    the strings live until options_free().
 */
#ifndef SERVER_OPTIONS_H
#define SERVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"

#define OPTIONS_BAD 64 /* EX_USAGE */

struct options {
	char *file;       /* -f; NULL: none given */
	int test;         /* -t: 1, -tt: 2, which also opens what the configuration names */
	bool print;       /* -p: what was understood of the configuration */
	bool foreground;  /* -D; the default, kept for scripts that say so */
	bool version;     /* -v */
	bool features;    /* -V */
	bool one;         /* -1: one request on standard input, then exit */
	bool until_eof;   /* exit when standard input ends */
	char *manual;     /* --manual[=PAGE]: for manual_print() */
};

int options_parse(int argc, char **argv, struct options *);
void options_free(struct options *);

/* One line of -V: "+ linux-sendfile   what it is". */
struct options_feature {
	const char *name, *doc;
	bool works; /* on this kernel */
};
void options_features(struct buf *out, const char *title, const struct options_feature *, size_t n);

/* The options as the manual lists them; ends with a NULL long name. */
struct options_doc {
	char letter; /* '\0': none */
	const char *name, *arg, *prose;
};
extern const struct options_doc options_docs[];

#endif
