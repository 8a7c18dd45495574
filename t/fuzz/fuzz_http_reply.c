/* t/fuzz/fuzz_http_reply.c -- any bytes from an HTTP application.  The first byte: flags of the
 * request. */
#include "t/fuzz/fuzz.h"
#include "t/fuzz/reply.h"

enum { HEAD = 1, KEEP = 2, UPGRADE = 4 };

#define OK11 "HTTP/1.1 200 OK\r\n"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("\2" OK11 "Content-Length: 2\r\nX-Sendfile: /a\r\n\r\nok"),
	SEED("\2" OK11 "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nA: b\r\n\r\n"),
	SEED("\2HTTP/1.0 404\nConnection: keep-alive\nContent-Length: 2\n\nno"),
	SEED("\2" OK11 "Connection: close, x\r\nStatus: 404\r\n\r\nto the end"),
	SEED("\2HTTP/1.1 100 x\r\n\r\nHTTP/1.1 103 x\r\nLink: a\r\n\r\nHTTP/1.1 204 x\r\n\r\n"),
	SEED("\3" OK11 "Content-Length: 200\r\n\r\n"),
	SEED("\4HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x00"),
	SEED("\2" OK11 "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	SEED("\2" OK11 "Content-Length: 9\r\n\r\nok"),
	SEED("\2" OK11 "Transfer-Encoding: gzip\r\n\r\n"),
	SEED("\2HTTP/1.0 200 x\r\nTransfer-Encoding: chunked\r\n\r\n"),
	SEED("\0ICY 200 OK\r\n\r\n"),
	{ NULL, 0 },
};

extern const struct proto proto_http;
static unsigned flags;

/* The request that the reply answers is written before the first byte comes. */
static void
reply(void *state, struct reply_head *h, struct text *in, struct buf *none, struct proto_event *ev)
{
	char *started = (char *)state + proto_http.size;
	struct proxy_request r = { .method = (flags & HEAD) != 0 ? TEXT("HEAD") : TEXT("GET"),
		.target = TEXT("/"),
		.upgrade = (flags & UPGRADE) != 0 ? TEXT("a") : TEXT_NONE,
		.content_length = -1 };
	struct buf out;

	if (*started == 0) {
		*started = 1;
		buf_init(&out, 0);
		must(proto_http.request(state, &r, (flags & KEEP) != 0, &out) == 0);
		buf_free(&out);
	}
	proto_http.reply(state, h, in, NULL, ev);
	must(ev->kind != PROTO_END || !ev->reuse || (flags & KEEP) != 0);
	must(ev->kind != PROTO_HEAD || h->reply.status != 101 || (flags & UPGRADE) != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct proto asked = proto_http;

	if (n == 0)
		return (0);
	flags = p[0];
	asked.size++;
	asked.reply = reply;
	fuzz_reply(&asked, (struct text){ (const char *)p + 1, n - 1 });
	return (0);
}
