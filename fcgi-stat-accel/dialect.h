/* fcgi-stat-accel/dialect.h -- how each web server expects the name of the file to send; the rows
 * are in dialects.def.
 */
#ifndef FCGI_STAT_ACCEL_DIALECT_H
#define FCGI_STAT_ACCEL_DIALECT_H

#include <stdbool.h>

struct dialect {
	const char *name; /* value of --for */
	const char *header;
	bool raw;  /* sends the name unchanged; false: percent-encoded */
	bool utf8; /* names that are not UTF-8 are not sent */
	/* Status of the answer; after a 200 h2o would send a GET for the file, also for HEAD. */
	bool status_307;
	const char *doc;
};

extern const struct dialect dialects[]; /* ends with name NULL */

#endif
