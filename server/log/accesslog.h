/* server/log/accesslog.h -- one line per request in the combined format.
 *
 *   127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] "GET / HTTP/1.1" 200 2326 "-" "curl/8.0"
 *
 * Bytes of a client cannot start a second line or leave their quotes: <0x20, 0x7f, `"` and `\`
 * become \xHH.
 * Thread   any.
 */
#ifndef SERVER_ACCESSLOG_H
#define SERVER_ACCESSLOG_H

#include <stdint.h>
#include "base/buf.h"
#include "base/text.h"

struct access {
	/* filled in server/reply/log.c */
	struct text remote, user, line, referer, agent; /* an empty text is written as "-" */
	int status;
	uint64_t bytes;   /* bytes of the body */
	const char *date; /* as in a Date field */
};

void accesslog_line(struct buf *out, const struct access *);

#endif
