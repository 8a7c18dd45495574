/* t/unit/wire/wire_test.h -- FastCGI records and requests in one line each. */
#ifndef T_WIRE_TEST_H
#define T_WIRE_TEST_H

#include <errno.h>
#include <stdlib.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/must.h"
#include "base/log.h"
#include "t/unit/test.h"
#include "wire/codec/codec.h"

static inline void
record(struct buf *b, unsigned version, unsigned type, unsigned id, struct text content,
    unsigned padding)
{
	const char head[8] = { (char)version, (char)type, (char)(id >> 8), (char)id,
		(char)(content.n >> 8), (char)content.n, (char)padding, 0 };

	buf_add(b, head, sizeof(head));
	buf_text(b, content);
	while (padding-- > 0)
		buf_char(b, 'p');
}

static inline void
put_stdout(struct buf *b, const char *s)
{
	record(b, 1, 6, 1, text_of(s), 0);
}

static inline void
put_stderr(struct buf *b, const char *s)
{
	record(b, 1, 7, 1, text_of(s), 0);
}

static inline void
put_end(struct buf *b, unsigned protocol_status)
{
	const char end[8] = { 0, 0, 0, 0, (char)protocol_status, 0, 0, 0 };

	record(b, 1, 3, 1, (struct text){ end, sizeof(end) }, 0);
}

static const struct proxy_field no_headers[1] = { { { NULL, 0 }, { NULL, 0 } } };

static inline struct proxy_request
a_request(const char *method)
{
	return ((struct proxy_request){
	    .id = "c1.1",
	    .method = text_of(method),
	    .content_length = -1,
	    .target = TEXT("/a%20b?x=1"),
	    .path = TEXT("/a b"),
	    .query = TEXT("x=1"),
	    .protocol = TEXT("HTTP/1.1"),
	    .host = TEXT("www.example.org:81"),
	    .scheme = TEXT("http"),
	    .docroot = TEXT("/srv"),
	    .script_filename = TEXT("/srv/a b"),
	    .remote_addr = TEXT("192.0.2.7"),
	    .server_addr = TEXT("192.0.2.1"),
	    .server_name = TEXT("www.example.org"),
	    .remote_port = 40000,
	    .forward = FORWARD_X,
	    .server_port = 81,
	    .headers = no_headers,
	    .safe = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0,
	    .idempotent = strcmp(method, "POST") != 0,
	});
}

static inline void
log_nowhere(void *arg, struct text line)
{
	GString *s = arg;

	if (s != NULL)
		g_string_append_len(s, line.p, (gssize)line.n);
}

#endif
