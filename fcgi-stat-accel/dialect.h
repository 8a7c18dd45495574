/* fcgi-stat-accel/dialect.h -- how each web server expects the name of the file to send; the rows are in dialects.def. */
#ifndef FCGI_STAT_ACCEL_DIALECT_H
#define FCGI_STAT_ACCEL_DIALECT_H

#include <stdbool.h>

struct dialect {
	const char *name;		/* of --for */
	const char *header;
	bool	    raw;		/* the name as it is; percent-encoded otherwise */
	bool	    utf8;		/* names that are not UTF-8 are not sent */
	bool	    status_307;		/* of the answer; after a 200 h2o would GET the file, also for HEAD */
	const char *doc;
};

extern const struct dialect dialects[];			/* ends with a NULL name */
const struct dialect *dialect_of(const char *name);	/* NULL: unknown */

#endif
