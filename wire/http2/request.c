/* wire/http2/request.c -- see request.h */
#include "wire/http2/request.h"
#include "wire/http1/scan.h"
#include "wire/http2/fields.h"

/* Any 16 bytes in base64: an application of HTTP/1 wants a key, and its answer to it is dropped. */
#define WEBSOCKET                                                          \
	"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " \
	"c3RhdC1hY2NlbC1odHRwMg==\r\n"

static const struct text names[PSEUDOS] = {
	[PSEUDO_METHOD] = { ":method", 7 },
	[PSEUDO_PATH] = { ":path", 5 },
	[PSEUDO_AUTHORITY] = { ":authority", 10 },
	[PSEUDO_SCHEME] = { ":scheme", 7 },
	[PSEUDO_PROTOCOL] = { ":protocol", 9 },
};

void
http2_request_init(struct http2_request *q, size_t max)
{
	*q = (struct http2_request){ .max = max };
	buf_init(&q->head, 0);
	buf_init(&q->cookies, 0);
	buf_init(&q->values, 0);
}

void
http2_request_free(struct http2_request *q)
{
	buf_free(&q->head);
	buf_free(&q->cookies);
	buf_free(&q->values);
}

void
http2_request_begin(struct http2_request *q)
{
	q->head.n = q->cookies.n = q->values.n = 0;
	q->head.failed = q->cookies.failed = q->values.failed = false;
	q->has = 0;
	q->cut = 0;
	q->begun = q->has_length = false;
}

static struct text
pseudo(const struct http2_request *q, enum http2_pseudo id)
{
	if ((q->has & 1u << id) == 0 || q->values.failed)
		return (TEXT_NONE);
	return ((struct text){ q->values.p + q->pseudo[id].at, q->pseudo[id].n });
}

/* False: the head is as long as it may be. */
static bool
has_room(struct http2_request *q, size_t n)
{
	if (q->cut == 0 && q->head.n + q->cookies.n + n <= q->max)
		return (true);
	q->cut += n;
	return (false);
}

/* ---- the line */

/* One that is too long keeps its beginning: the parser says that the line is too long. */
static void
keep_pseudo(struct http2_request *q, unsigned id, struct text value)
{
	if (value.n > q->max) {
		q->cut += value.n - q->max;
		value.n = q->max;
	}
	q->has |= 1u << id;
	q->pseudo[id].at = q->values.n;
	q->pseudo[id].n = value.n;
	buf_text(&q->values, value);
}

static const char *
take_pseudo(struct http2_request *q, struct text name, struct text value)
{
	unsigned id = 0;

	while (id < PSEUDOS && !text_eq(name, names[id]))
		id++;
	if (id == PSEUDOS)
		return ("unknown pseudo-header field");
	if (q->begun)
		return ("a pseudo-header field after the others");
	if (q->has & 1u << id)
		return ("two pseudo-header fields of one name");
	if (value.n == 0 || skip_target(value.p, value.p + value.n) != value.p + value.n)
		return ("a bad character in a pseudo-header field");
	keep_pseudo(q, id, value);
	return (NULL);
}

static bool
has_protocol(const struct http2_request *q)
{
	return ((q->has & 1u << PSEUDO_PROTOCOL) != 0);
}

/* Another protocol is refused as CONNECT to a host is. */
bool
http2_request_is_tunnel(const struct http2_request *q)
{
	return (has_protocol(q) && text_ieq(pseudo(q, PSEUDO_PROTOCOL), TEXT("websocket")));
}

bool
http2_request_is_head(const struct http2_request *q)
{
	return (text_eq(pseudo(q, PSEUDO_METHOD), TEXT("HEAD")));
}

static bool
is_connect(const struct http2_request *q)
{
	return (text_eq(pseudo(q, PSEUDO_METHOD), TEXT("CONNECT")));
}

/* An absolute form would name a host other than :authority. */
static bool
is_path(struct text t)
{
	return (t.n != 0 && (t.p[0] == '/' || text_eq(t, TEXT("*"))));
}

/* What RFC 9113 8.3.1 and 8.5 ask for, and RFC 8441 4. */
static const char *
check_line(const struct http2_request *q)
{
	const unsigned all = 1u << PSEUDO_METHOD | 1u << PSEUDO_PATH | 1u << PSEUDO_SCHEME;

	if (has_protocol(q) && !is_connect(q))
		return (":protocol without the method CONNECT");
	if (is_connect(q) && !has_protocol(q))
		return ((q->has & ~(1u << PSEUDO_METHOD)) != 1u << PSEUDO_AUTHORITY
			    ? "CONNECT needs :authority, and no other pseudo-header field"
			    : NULL);
	if ((q->has & all) != all)
		return ("a pseudo-header field is missing");
	return (is_path(pseudo(q, PSEUDO_PATH)) ? NULL : ":path begins without a slash");
}

static void
put_line(struct http2_request *q)
{
	struct text authority = pseudo(q, PSEUDO_AUTHORITY);
	bool tunnel = http2_request_is_tunnel(q);

	buf_text(&q->head, tunnel ? TEXT("GET") : pseudo(q, PSEUDO_METHOD));
	buf_char(&q->head, ' ');
	buf_text(&q->head, is_connect(q) && !tunnel ? authority : pseudo(q, PSEUDO_PATH));
	buf_text(&q->head, TEXT(" HTTP/2.0\r\n"));
	if (authority.p != NULL) {
		buf_text(&q->head, TEXT("Host: "));
		buf_text(&q->head, authority);
		buf_text(&q->head, TEXT("\r\n"));
	}
}

static const char *
begin_fields(struct http2_request *q)
{
	const char *why;

	if (q->begun)
		return (NULL);
	q->begun = true;
	if (q->values.failed)
		return (NULL); /* the end tells it */
	why = check_line(q);
	if (why == NULL)
		put_line(q);
	return (why);
}

/* ---- fields */

static bool
is_name(struct text t)
{
	const char *end = t.p + t.n, *p;

	for (p = t.p; p < end; p++)
		if (*p >= 'A' && *p <= 'Z')
			return (false);
	return (t.n != 0 && skip(t.p, end, C_TOKEN) == end);
}

static bool
is_value(struct text t)
{
	return (t.n == 0 || skip_value(t.p, t.p + t.n) == t.p + t.n);
}

static bool
is_te(struct text name, struct text value)
{
	return (name.n == 2 && text_eq(name, TEXT("te")) && !text_ieq(value, TEXT("trailers")));
}

static void
put_field(struct buf *b, struct text name, struct text value)
{
	char *p = buf_extend(b, name.n + value.n + 4);

	if (p == NULL)
		return;
	memcpy(p, name.p, name.n);
	p += name.n;
	*p++ = ':';
	*p++ = ' ';
	if (value.n != 0)
		memcpy(p, value.p, value.n);
	p += value.n;
	*p++ = '\r';
	*p = '\n';
}

/* A client may send it in pieces, to compress them: RFC 9113 8.2.3. */
static void
put_cookie(struct http2_request *q, struct text value)
{
	if (q->cookies.n != 0)
		buf_text(&q->cookies, TEXT("; "));
	buf_text(&q->cookies, value);
}

const char *
http2_request_field(struct http2_request *q, struct text name, struct text value)
{
	const char *why;

	if (name.n != 0 && name.p[0] == ':')
		return (take_pseudo(q, name, value));
	if (!is_name(name))
		return ("a bad character in the name of a field");
	if (!is_value(value))
		return ("a bad character in a field");
	if (text_trim(value).n != value.n)
		return ("a field begins or ends with a space");
	if (http2_is_of_connection(name) || is_te(name, value))
		return ("a field of a connection of HTTP/1");
	why = begin_fields(q);
	if (why != NULL)
		return (why);
	if (name.n == 4 && text_eq(name, TEXT("host")) && pseudo(q, PSEUDO_AUTHORITY).p != NULL)
		return (text_ieq(value, pseudo(q, PSEUDO_AUTHORITY)) || q->cut != 0
			    ? NULL
			    : "host is not :authority");
	if (!has_room(q, name.n + value.n + 4))
		return (NULL);
	if (name.n == 14 && text_eq(name, TEXT("content-length")))
		q->has_length = true;
	if (name.n == 6 && text_eq(name, TEXT("cookie")))
		put_cookie(q, value);
	else
		put_field(&q->head, name, value);
	return (NULL);
}

/* ---- the end */

bool
http2_request_is_chunked(const struct http2_request *q, bool body)
{
	return (body && !q->has_length && !http2_request_is_tunnel(q));
}

/* More bytes than the parser takes, without an end: it says which part was too long. */
static void
fill(struct http2_request *q)
{
	static const char more[256] = { [0 ... 255] = 'x' };

	while (q->head.n <= q->max && !q->head.failed)
		buf_add(&q->head, more, sizeof(more));
}

const char *
http2_request_end(struct http2_request *q, bool body, struct text *head)
{
	const char *why = begin_fields(q);

	*head = TEXT_NONE;
	if (why != NULL)
		return (why);
	if (q->cookies.n != 0)
		put_field(&q->head, TEXT("cookie"), buf_as_text(&q->cookies));
	if (http2_request_is_tunnel(q))
		buf_text(&q->head, TEXT(WEBSOCKET));
	if (http2_request_is_chunked(q, body))
		buf_text(&q->head, TEXT("transfer-encoding: chunked\r\n"));
	if (q->cut != 0)
		fill(q);
	else
		buf_text(&q->head, TEXT("\r\n"));
	if (!q->head.failed && !q->cookies.failed && !q->values.failed)
		*head = buf_as_text(&q->head);
	return (NULL);
}
