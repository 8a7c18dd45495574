/* fcgi-stat-accel/want.h -- which bytes of the file the web server is going to send, as far as its variables tell. */
#ifndef FCGI_STAT_ACCEL_WANT_H
#define FCGI_STAT_ACCEL_WANT_H

#include "wire/range.h"

/* None for HEAD; those of HTTP_RANGE for a GET without HTTP_IF_RANGE (which may make it the whole file); else all of them.  In whole
 * pages, so that neighbours share an answer. */
void want_of(char **params, struct range_set *);

#endif
