/* server/reply/impl.h -- shared by the files of reply.h: put() writes heads without formatted
 * printing or allocation.
 */
#ifndef SERVER_REPLY_IMPL_H
#define SERVER_REPLY_IMPL_H

#include <string.h>
#include "base/text.h"
#include "server/reply/reply.h"
#include "wire/http1/http1.h"

#define REPLY_OWN_HEAD_MAX \
	1536u             /* longest head made by the server, without lines of an application */
#define REPLY_END_MAX 96u /* the part of it that reply_put_end() writes */
#define CRLF          TEXT("\r\n")

static inline char *
put(char *p, struct text t)
{
	if (t.n != 0)
		memcpy(p, t.p, t.n);
	return (p + t.n);
}

static inline char *
put_status(char *p, int status)
{
	p = put(p, TEXT("HTTP/1.1 "));
	p += text_put_u64(p, (uint64_t)status);
	*p++ = ' ';
	return (put(put(p, text_of(http1_reason(status))), CRLF));
}

static inline char *
put_u64_line(char *p, struct text name, uint64_t v)
{
	p = put(p, name);
	p += text_put_u64(p, v);
	return (put(p, CRLF));
}

static inline char *
put_line(char *p, struct text name, struct text value)
{
	return (put(put(put(p, name), value), CRLF));
}

/* Adds the parts that cannot be prepared: the date, Connection, the empty line. */
char *reply_put_end(char *p, struct request *);
/* Adds the headers of an application, which may need more than one piece of memory, and ends the
 * head.  False: no memory. */
bool reply_end_head(struct request *, const struct reply_extra *);
void reply_no_memory(struct request *);

#endif
