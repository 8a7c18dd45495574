/* io/tls/link.c -- a socket after its handshake: records to bytes, and back.
 *
 * Sending  a send encrypts up to BATCH bytes and gives the records to the socket in one call.  When
 *          the socket takes only a part, all bytes of the batch but the last are reported as
 *          accepted: their memory and their windows are free again, and the file that they come
 *          from counts as begun.  The last byte is owed until the socket has taken every record, so
 *          that a reply ends when the socket has it.
 * Records  are small at first, and after an idle second: each fits into one segment, so the client
 *          can read the first of them before the others come.
 * Reading  one record a call is all that OpenSSL gives, so it is called until the buffer is full,
 *          or RECORDS times: a record may have one byte.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "io/engine.h"
#include "io/tls/impl.h"
#include "io/tls/verifier.h"

#define RECORD    (16u << 10) /* bytes of the application, at most */
#define BATCH     IO_TLS_SEND
#define TAKEN_MAX (2 * BATCH) /* more makes no difference */
/* With its head and tag it fits into a segment of IPv6 with time stamps, over PPPoE, too. */
#define SMALL 1390u
/* As many small ones as a new connection may send before the client answers: 10 segments.
 * Each costs a microsecond more than its bytes. */
#define SMALL_BYTES (10 * SMALL)
#define IDLE_NS     NS_PER_S
#define RECORDS     64u /* read in one call */
/* What a record adds to its bytes is less than that. */
#define RECORD_MORE  64u
#define RECORDS_MORE ((BATCH / RECORD + SMALL_BYTES / SMALL + 2) * RECORD_MORE)
/* Alerts that the peer provokes and does not read. */
#define OUT_UNASKED (16u << 10)
/* Messages of handshakes after the first one: updates of keys, or hellos that are refused.  OpenSSL
 * takes 15 us for an update, and reads on until bytes of the application are there.  A client needs
 * an update after 2^24 records. */
#define MESSAGES 32u
/* What OpenSSL writes of its own, and what may wait for bytes of the application. */
#define OUT_ALONG (4u << 10)
/* The number of an alert is a byte.  Faults of OpenSSL itself, such as no memory, are above. */
#define ALERT_MAX 255

const char *
tls_reason(void)
{
	unsigned long e = ERR_peek_last_error();

	return (e != 0 ? ERR_reason_error_string(e) : NULL);
}

/* ERR_clear_error() walks through 16 places, full or not: 900 instructions. */
void
tls_forget_reason(void)
{
	if (ERR_peek_last_error() != 0)
		ERR_clear_error();
}

uint8_t
tls_fault_class(void)
{
	int reason = ERR_GET_REASON(ERR_peek_last_error());

	switch (reason) {
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SHARED_GROUPS:
	case SSL_R_NO_SUITABLE_GROUPS:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW: return (SHAKE_NOTHING_COMMON);
	}
	if (reason > SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + ALERT_MAX)
		return (SHAKE_ALERT);
	return (SHAKE_OTHER);
}

/* ---- sending */

/* The socket may be full for hours: what is left moves to memory of its size.  Only when a quarter
 * is free, so that few bytes are copied more than once. */
static void
keep_rest(struct tls_link *l)
{
	size_t n = l->out.n - l->out_at;
	struct buf rest;

	if (l->out.cap - n < l->out.cap / 4)
		return;
	buf_init(&rest, l->out.max);
	buf_add(&rest, l->out.p + l->out_at, n);
	if (rest.failed)
		return;
	buf_free(&l->out);
	l->out = rest;
	l->out_at = 0;
}

int
tls_flush(struct tls_link *l, struct io_sock *s, bool more)
{
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0);
	ssize_t k;

	while (l->out_at < l->out.n) {
		k = send(s->fd, l->out.p + l->out_at, l->out.n - l->out_at, flags);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno != EAGAIN)
			return (-errno);
		l->out_at += k > 0 ? (size_t)k : 0;
		if (l->out_at < l->out.n) {
			s->hints &= (uint8_t)~SOCK_WRITABLE;
			keep_rest(l);
			return (-EAGAIN);
		}
	}
	l->out_at = 0;
	buf_free(&l->out);
	return (0);
}

struct pieces { /* what is left of an iov */
	const struct iovec *iov;
	int n;
	size_t at; /* in the first one */
};

static void
skip(struct pieces *ps, size_t k)
{
	ps->at += k;
	while (ps->n > 0 && ps->at >= ps->iov->iov_len) {
		ps->at -= ps->iov->iov_len;
		ps->iov++;
		ps->n--;
	}
}

/* The bytes of the next record: where they lie, or copied together.  Small pieces would be a record
 * each. */
static struct text
next_record(struct pieces *ps, char buf[RECORD], size_t most)
{
	struct text t = TEXT_NONE;
	size_t k;

	if (ps->n > 0 && (ps->n == 1 || ps->iov->iov_len - ps->at >= most)) {
		t = (struct text){ (const char *)ps->iov->iov_base + ps->at,
			ps->iov->iov_len - ps->at };
		t.n = t.n < most ? t.n : most;
		skip(ps, t.n);
		return (t);
	}
	t.p = buf;
	while (ps->n > 0 && t.n < most) {
		k = ps->iov->iov_len - ps->at;
		k = k < most - t.n ? k : most - t.n;
		memcpy(buf + t.n, (const char *)ps->iov->iov_base + ps->at, k);
		t.n += k;
		skip(ps, k);
	}
	return (t);
}

/* The bytes are in records of l->out.  -errno. */
static int
encrypt(struct tls_link *l, struct text t)
{
	size_t k;

	tls_forget_reason();
	if (SSL_write_ex(l->ssl, t.p, t.n, &k) == 1 && k == t.n && !l->out.failed)
		return (0);
	l->why = tls_reason();
	l->err = l->out.failed ? -ENOMEM : -EPROTO;
	return (l->err);
}

static size_t
least(size_t a, size_t b)
{
	return (a < b ? a : b);
}

/* Bytes of the next batch: half of what the socket has taken since it was full, so that less waits
 * in memory than in the socket. */
static size_t
batch(const struct tls_link *l)
{
	size_t n = l->taken / 2 / RECORD * RECORD;

	return (n != 0 ? n : RECORD);
}

static int
encrypt_some(struct tls_link *l, struct pieces *ps, size_t left)
{
	size_t had = l->out.n, most;
	char buf[RECORD];
	struct text t;
	int err = 0;

	left = least(left, batch(l));
	/* grown once, not record by record */
	if (buf_extend(&l->out, left + RECORDS_MORE) == NULL)
		return (-ENOMEM);
	l->out.n = had;
	while (left > 0 && err == 0) {
		most = l->small < SMALL_BYTES ? SMALL : RECORD;
		t = next_record(ps, buf, least(most, left));
		err = encrypt(l, t);
		l->small += most == SMALL ? t.n : 0;
		l->owed += t.n;
		left -= t.n;
	}
	return (err);
}

/* Sends a batch, whose bytes are owed. */
static int
send_batch(struct tls_link *l, struct io_sock *s, bool more)
{
	int err = tls_flush(l, s, more);

	l->taken = err == 0 ? least(l->taken + l->owed, TAKEN_MAX) : 0;
	return (err);
}

/* What the caller offers begins with the bytes that are owed. */
static int64_t
report(struct tls_link *l, size_t n)
{
	l->owed -= n;
	return (n > 0 ? (int64_t)n : -EAGAIN);
}

/* What OpenSSL has written of its own, such as tickets, goes with the bytes of the application. */
static bool
goes_along(const struct tls_link *l)
{
	return (l->owed == 0 && l->out_at == 0 && l->out.n <= OUT_ALONG);
}

static int64_t
link_send(struct io_sock *s, const struct iovec *iov, int n, bool more)
{
	struct tls_link *l = tls_link_of(s);
	struct pieces ps = { iov, n, 0 };
	size_t total = 0;
	int i, err;

	if (l->err != 0)
		return (l->err);
	for (i = 0; i < n; i++)
		total += iov[i].iov_len;
	err = goes_along(l) ? 0 : tls_flush(l, s, more);
	if (err == 0 && l->owed < total) {
		skip(&ps, l->owed);
		err = encrypt_some(l, &ps, total - l->owed);
		if (err == 0)
			err = send_batch(l, s, more || l->owed < total);
	}
	if (err != 0 && err != -EAGAIN)
		return (err);
	if (err == 0)
		return (report(l, least(l->owed, total)));
	return (report(l, least(l->owed > 0 ? l->owed - 1 : 0, total)));
}

/* ---- receiving */

/* It may not fail; so OpenSSL takes what has come for the end. */
static void
on_message(int sends, int version, int type, const void *p, size_t n, SSL *ssl, void *arg)
{
	struct tls_link *l = arg;

	if (sends || type != SSL3_RT_HANDSHAKE || ++l->messages <= MESSAGES)
		return;
	l->err = -EPROTO;
	l->why = "too many updates of keys, or hellos";
	SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

void
tls_link_guard(struct tls_link *l)
{
	SSL_set_msg_callback(l->ssl, on_message);
	SSL_set_msg_callback_arg(l->ssl, l);
}

static void say_end(struct io_sock *, bool fin);

/* A client closes after the server, which has TIME_WAIT then.  lighttpd closes when it has the
 * client's word, or a second later.  0 or -EAGAIN. */
static int64_t
await_end(struct tls_link *l, struct io_sock *s)
{
	char unread[256];
	ssize_t k = 1;

	say_end(s, false);
	while (!l->end && k > 0)
		k = recv(s->fd, unread, sizeof(unread), MSG_DONTWAIT);
	l->end = l->end || k == 0 || errno != EAGAIN;
	if (l->end)
		return (0);
	s->hints &= (uint8_t)~SOCK_READABLE;
	return (-EAGAIN);
}

/* The next bytes are an event of the socket. */
static int64_t
await_bytes(struct tls_link *l, struct io_sock *s)
{
	if (l->out.n - l->out_at > OUT_UNASKED) {
		l->err = -EPROTO;
		return (l->err);
	}
	s->hints &= (uint8_t)~SOCK_READABLE;
	return (-EAGAIN);
}

/* Another call would bring no bytes. */
static bool
is_drained(const struct tls_link *l)
{
	return (l->drained && l->in.n == l->in_at && SSL_has_pending(l->ssl) == 0);
}

/* The result of a call that brought no bytes. */
static int64_t
no_bytes(struct tls_link *l, struct io_sock *s, int rc)
{
	if (l->err != 0)
		return (l->err);
	switch (SSL_get_error(l->ssl, rc)) {
	case SSL_ERROR_WANT_READ: return (await_bytes(l, s));
	case SSL_ERROR_ZERO_RETURN: return (l->client ? await_end(l, s) : 0);
	}
	l->why = tls_reason();
	l->err = -EPROTO;
	return (l->err);
}

/* After an idle second the network may have to be probed again. */
static void
hear(const struct io *io, struct tls_link *l)
{
	if (io_now(io) - l->heard_ns > IDLE_NS)
		l->small = 0;
	l->heard_ns = io_now(io);
}

static int64_t
link_receive(struct io *io, struct io_sock *s, char *buf, size_t most)
{
	struct tls_link *l = tls_link_of(s);
	size_t got = 0, k = 0;
	unsigned records = 0;
	int64_t none = 0;
	int rc = 1;

	if (l->err != 0)
		return (l->err);
	l->drained = false;
	l->hung = (s->hints & SOCK_HUNG) != 0;
	while (rc == 1 && got < most && records < RECORDS && !is_drained(l)) {
		tls_forget_reason();
		rc = SSL_read_ex(l->ssl, buf + got, most - got, &k);
		got += rc == 1 ? k : 0;
		records++;
	}
	/* a record of one byte takes a microsecond, and one of 16 KiB little more than its bytes */
	io->budget -= (int64_t)records * IO_CALLBACK;
	if (got > 0)
		hear(io, l);
	if (rc != 1)
		none = no_bytes(l, s, rc);
	else if (is_drained(l))
		none = await_bytes(l, s);
	/* an alert; or tickets, which wait for the reply to a request that is there already */
	if ((got == 0 || l->err != 0 || !goes_along(l)) && l->owed == 0 && l->out.n != 0)
		(void)tls_flush(l, s, false);
	return (got > 0 ? (int64_t)got : none);
}

static bool
link_has_bytes(const struct io_sock *s)
{
	const struct tls_link *l = tls_link_of(s);

	return (l->in.n != l->in_at || SSL_has_pending(l->ssl) == 1);
}

/* ---- the end */

/* fin: it follows at once, so both are one segment. */
static void
say_end(struct io_sock *s, bool fin)
{
	struct tls_link *l = tls_link_of(s);

	if (l->step != TLS_UP || l->err != 0 || (l->client && l->end) ||
	    tls_flush(l, s, false) != 0)
		return;
	if (SSL_get_shutdown(l->ssl) & SSL_SENT_SHUTDOWN)
		return;
	tls_forget_reason();
	(void)SSL_shutdown(l->ssl);
	(void)tls_flush(l, s, fin);
}

static void
link_say_end(struct io_sock *s)
{
	say_end(s, true);
}

/* ---- to another loop */

static bool
link_may_move(const struct io_sock *s)
{
	const struct tls_link *l = tls_link_of(s);

	return (l->step == TLS_UP && goes_along(l));
}

static void
link_moved(struct io_sock *s)
{
	tls_link_of(s)->fd = s->fd;
}

static void
link_free(struct io_transport *t)
{
	tls_link_free(container_of(t, struct tls_link, transport));
}

const struct io_transport_calls tls_link_calls = {
	.receive = link_receive,
	.send = link_send,
	.has_bytes = link_has_bytes,
	.say_end = link_say_end,
	.may_move = link_may_move,
	.moved = link_moved,
	.free = link_free,
};

void
tls_link_use(struct tls_link *l, SSL_CTX *ctx)
{
	SSL_CTX_free(l->ctx);
	l->ctx = ctx;
}

struct tls_link *
tls_link_new(SSL_CTX *ctx)
{
	struct tls_link *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		SSL_CTX_free(ctx);
		return (NULL);
	}
	l->transport.calls = &tls_link_calls;
	l->ctx = ctx;
	l->fd = -1;
	l->taken = TAKEN_MAX;
	buf_init(&l->in, 0);
	buf_init(&l->out, 0);
	return (l);
}

bool
tls_link_make(struct tls_link *l)
{
	BIO *b;

	l->ssl = SSL_new(l->ctx);
	b = l->ssl != NULL ? tls_bio_new(l) : NULL;
	if (b != NULL)
		SSL_set_bio(l->ssl, b, b);
	return (b != NULL);
}

bool
tls_ended(struct io_op *op, int64_t res, const char *why)
{
	op->handshake.why = why;
	op->res = res;
	return (true);
}

bool
tls_park(struct io *io, struct io_op *op, bool writes)
{
	op->handshake.writes = writes;
	io->calls->park(io, op);
	return (false);
}

void
tls_link_free(struct tls_link *l)
{
	/* A session whose connection ends without an alert would not be resumed. */
	if (l->client && l->ssl != NULL)
		SSL_set_shutdown(l->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(l->ssl);
	SSL_CTX_free(l->ctx);
	free((void *)(uintptr_t)l->transport.facts);
	tls_verifier_put(l->verifier);
	free(l->host);
	free(l->challenge);
	buf_free(&l->in);
	buf_free(&l->out);
	free(l);
}
