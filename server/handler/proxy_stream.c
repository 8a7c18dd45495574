/* server/handler/proxy_stream.c -- a request body that goes to the application while it arrives,
 * 1xx replies, and fields that follow a reply.
 *
 *   client --> server/conn/stream.c --take()--> exchange_body() --> application
 *
 * The application's socket is leased before the body is there, so a slow client holds it.
 */
#include "proxy-core/exchange.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/client.h"
#include "server/handler/proxy_impl.h"
#include "server/request/request.h"

static bool
wants(const struct request *r)
{
	return (r->conf->stream_request_body != 0 &&
		(r->in.left > 0 || upstream_takes_unsized(r->site->upstream)));
}

static bool
cgi_wants(const struct request *r)
{
	return (r->conf->stream_request_body != 0 && r->in.left > 0);
}

static size_t
room(struct request *r)
{
	struct relay *rl = relay_of(r);

	return (rl != NULL && rl->ex != NULL ? exchange_room(rl->ex) : SIZE_MAX);
}

static void
take(struct request *r, struct text bytes)
{
	const struct relay *rl = relay_of(r);

	if (rl != NULL && rl->ex != NULL)
		exchange_body(rl->ex, bytes);
}

static void
end(struct request *r)
{
	const struct relay *rl = relay_of(r);

	if (rl != NULL && rl->ex != NULL)
		exchange_body_end(rl->ex);
}

/* If the body is cut, the socket of the application closes: the application must not take a part
 * for the whole. */
static void
failed(struct request *r, int status)
{
	struct relay *rl = relay_of(r);

	if (rl == NULL || rl->ex == NULL)
		return; /* the reply is complete, or another one is on its way */
	exchange_forget(&rl->ex, false);
	if (rl->has_head) {
		conn_cut(r);
		return;
	}
	rl->has_head = true;
	proxy_answer_error(rl, status);
}

const struct body_taker proxy_takes = {
	.wants = wants,
	.room = room,
	.take = take,
	.end = end,
	.failed = failed,
};

const struct body_taker cgi_takes = {
	.wants = cgi_wants,
	.room = room,
	.take = take,
	.end = end,
	.failed = failed,
};

void
proxy_interim(void *arg, const struct proxy_reply *p)
{
	struct relay *rl = arg;
	struct request *r = rl->r;
	struct text lines;

	/* The server sends 100 Continue itself.  HTTP/1.0 does not know 1xx. */
	if (r->http.minor == 0 || p->status == 100)
		return;
	lines = proxy_lines(rl, p, NULL);
	if (lines.p == NULL || !reply_interim(r, p->status, lines))
		return; /* the reply itself shows what is wrong */
	proxy_send_more(rl);
}

/* Other clients of HTTP/1.1 may not know what to do with them (RFC 9110 6.5.1). */
static bool
takes_trailers(const struct relay *rl)
{
	return (rl->r->http.major == 2 ||
		(rl->chunked && proxy_client_says(rl->r, TEXT("TE"), TEXT("trailers"))));
}

/* Compression drops them: a checksum among them is that of the body before it. */
void
proxy_trailers(void *arg, const struct proxy_reply *p)
{
	struct relay *rl = arg;
	struct request *r = rl->r;
	struct text lines;

	if (rl->coding.n != 0 || !takes_trailers(rl))
		return;
	lines = proxy_trailer_lines(rl, p);
	if (r->http.major != 2)
		rl->trailers = lines;
	else if (lines.n != 0 && !conn_trailers(r, lines))
		rl->broken = true;
}
