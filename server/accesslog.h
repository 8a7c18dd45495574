/* server/accesslog.h -- one line per request in the combined format.
 *
 *   127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] "GET / HTTP/1.1" 200 2326 "-" "curl/8.0"
 *
 * What a client chose cannot start a second line or leave its quotes: <0x20, 0x7f, `"` and `\` become \xHH.
 * Thread   any; each keeps the text of the current second.
 */
#ifndef SERVER_ACCESSLOG_H
#define SERVER_ACCESSLOG_H

#include <stdint.h>
#include "base/buf.h"
#include "base/text.h"

struct access {
	struct text remote, user, line, referer, agent; /* an empty one is written as "-" */
	int status;
	uint64_t bytes;  /* of the body */
	uint64_t wall_s; /* seconds since 1970, UTC */
};

void accesslog_line(struct buf *out, const struct access *);

#endif
