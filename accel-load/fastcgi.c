/* accel-load/fastcgi.c -- asks a FastCGI application as a web server does.
 *
 * wire/codec/fastcgi.c makes the requests and reads the records: the same code that accel-server
 * uses.
 */
#include <stdlib.h>

#include "accel-load/answer.h"
#include "accel-load/urls.h"
#include "wire/codec/codec.h"
#include "wire/urlpath.h"

enum { HEAD, BODY };

struct fastcgi {
	const struct proto *proto;
	struct reply_head head;
	struct buf out;   /* a codec may write answers to it; FastCGI does not */
	uint64_t codec[]; /* proto->size bytes */
};

/* ---------------------------------------------------------------- requests */

static const struct proxy_field usual[] = {
	{ TEXT("User-Agent"), TEXT("accel-load") },
	{ TEXT("Accept"), TEXT("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8") },
	{ TEXT("Accept-Language"), TEXT("en-US,en;q=0.5") },
	{ TEXT("Accept-Encoding"), TEXT("gzip, deflate, br") },
};

/* The path is a file name as well: an application such as fcgi-stat-accel is asked about files. */
static bool
fastcgi_request(const struct load_conf *conf, const struct url *u, const struct request *asked,
    struct buf *out)
{
	const struct proto *proto = proto_find("fastcgi");
	struct text target = { u->path, u->path_len }, rest = target, path;
	char name[URL_MAX + 1];
	int n;
	struct proxy_request r = {
		.id = "accel-load",
		.method = TEXT("GET"),
		.target = target,
		.protocol = TEXT("HTTP/1.1"),
		.host = TEXT("localhost"),
		.scheme = TEXT("http"),
		.docroot = TEXT("/"),
		.redirect_status = 200,
		.remote_addr = TEXT("127.0.0.1"),
		.remote_port = 54321,
		.server_addr = TEXT("127.0.0.1"),
		.server_name = TEXT("localhost"),
		.server_port = 80,
		.content_length = -1,
		.headers = usual,
		.nheaders = sizeof(usual) / sizeof(usual[0]),
		.safe = true,
	};

	text_next(&rest, '?', &path);
	n = urlpath_decode(path, name);
	if (n < 0)
		return (false);
	r.path = r.script_filename = (struct text){ name, (size_t)n };
	r.query = rest.p != NULL ? rest : TEXT("");
	if (proto->request(NULL, &r, !conf->close, out) < 0)
		return (false);
	proto->body_end(NULL, out);
	return (!out->failed);
}

/* ---------------------------------------------------------------- answers */

static struct fastcgi *
state_new(void)
{
	const struct proto *proto = proto_find("fastcgi");
	struct fastcgi *f = calloc(1, sizeof(*f) + proto->size);

	if (f == NULL)
		return (NULL);
	f->proto = proto;
	reply_head_init(&f->head);
	buf_init(&f->out, PROTO_REQUEST_MAX);
	return (f);
}

static enum answer_event
bad(struct answer *a, const char *why)
{
	a->why = why;
	return (ANSWER_BAD);
}

static bool
begin(struct answer *a)
{
	struct fastcgi *f = a->state;

	if (f == NULL)
		a->state = f = state_new();
	if (f == NULL)
		return (false);
	reply_head_free(&f->head);
	reply_head_init(&f->head);
	memset(f->codec, 0, f->proto->size);
	a->phase = BODY;
	return (true);
}

static enum answer_event
fastcgi_take(struct answer *a, struct text *in, struct text *body)
{
	struct fastcgi *f;
	struct proto_event ev;

	if (a->phase == HEAD && !begin(a))
		return (bad(a, "no memory"));
	for (f = a->state;;) {
		f->proto->reply(f->codec, &f->head, in, &f->out, &ev);
		switch (ev.kind) {
		case PROTO_MORE: return (ANSWER_MORE);
		case PROTO_HEAD:
			a->status = f->head.reply.status;
			a->keep = true;
			return (ANSWER_HEAD);
		case PROTO_BODY: *body = ev.bytes; return (ANSWER_BODY);
		case PROTO_END: a->keep = ev.reuse; return (ANSWER_END);
		case PROTO_INTERIM:
		case PROTO_NOTE: continue; /* standard error of the application */
		case PROTO_REFUSED:
		case PROTO_BAD: return (bad(a, ev.why));
		}
	}
}

static void
fastcgi_dropped(struct answer *a, uint64_t n)
{
}

static enum answer_event
fastcgi_eof(struct answer *a)
{
	return (bad(a, "the application closed within its answer"));
}

static struct text
fastcgi_field(const struct answer *a, struct text name)
{
	const struct fastcgi *f = a->state;
	const struct proxy_reply *r = &f->head.reply;
	enum control c = control_find(name);

	if (c < CONTROLS)
		return (r->control[c]);
	for (size_t i = 0; i < r->nheaders; i++)
		if (text_ieq(r->headers[i].name, name))
			return (r->headers[i].value);
	return (TEXT_NONE);
}

static void
fastcgi_free(struct answer *a)
{
	struct fastcgi *f = a->state;

	a->state = NULL;
	if (f == NULL)
		return;
	reply_head_free(&f->head);
	buf_free(&f->out);
	free(f);
}

const struct load_protocol load_fastcgi = {
	.name = "fastcgi",
	.request = fastcgi_request,
	.take = fastcgi_take,
	.dropped = fastcgi_dropped,
	.eof = fastcgi_eof,
	.field = fastcgi_field,
	.free = fastcgi_free,
};
