/* io/tls/handshake.c -- IO_HANDSHAKE: the loop moves bytes, threads compute.
 *
 *   loop     receive until a flight is whole --> job           send --> park, or the end
 *   thread                                        SSL_do_handshake()
 *
 * A private-key operation takes 0.1 to 5 ms, in which a loop would answer hundreds of requests.
 * The threads are those of LANE_TLS; the clients take turns.  The loop itself does steps without
 * it: a session is resumed, or the client's Finished is read.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "io/disk/job.h"
#include "io/engine.h"
#include "io/tls/challenge.h"
#include "io/tls/flight.h"
#include "io/tls/hello.h"
#include "io/tls/impl.h"
#include "io/tls/kept.h"
#include "io/tls/verifier.h"

/* A handshake has two to four flights.  A client that sends each byte as a record of its own gets
 * no thread for each. */
#define STEPS_MAX 64u
#define PIECE     4096u
/* A step on the loop, 0.1 ms, in bytes of its budget. */
#define STEP_HERE (256 << 10)

struct step_job {
	struct io_job job;
	struct tls_link *link;
};

static bool
refused(struct io_op *op, uint8_t fault, const char *why)
{
	op->handshake.fault = fault;
	return (tls_ended(op, -EPROTO, why));
}

/* ---- a step: in a thread, or on the loop */

/* OpenSSL asks before it uses the private key, and not if it resumes a session. */
static int
on_certificate(SSL *ssl, void *arg)
{
	const struct tls_link *l = arg;

	return (l->here ? -1 : 1);
}

static const char no_memory[] = "not enough memory";

/* *why: as of tls_challenge_new(). */
static bool
take_challenge(struct tls_link *l, const char **why)
{
	SSL_CTX *ctx = tls_challenge_new(l->challenge, why);

	if (ctx != NULL)
		tls_link_use(l, ctx);
	return (ctx != NULL);
}

static bool
make(struct tls_link *l)
{
	if ((l->challenge != NULL && !take_challenge(l, &l->why)) || !tls_link_make(l))
		return (false);
	SSL_set_accept_state(l->ssl);
	SSL_set_cert_cb(l->ssl, on_certificate, l);
	return (l->verifier == NULL || tls_verifier_apply(l->verifier, l->ssl));
}

static uint8_t
step_after(const struct tls_link *l, int rc)
{
	if (rc == 1)
		return (TLS_UP);
	switch (SSL_get_error(l->ssl, rc)) {
	case SSL_ERROR_WANT_READ: return (TLS_SHAKES);
	case SSL_ERROR_WANT_X509_LOOKUP: return (TLS_NEEDS_KEY);
	}
	return (TLS_FAILED);
}

static void
learn(struct tls_link *l)
{
	l->why = tls_learn(l);
	if (l->why != NULL)
		l->step = TLS_FAILED;
}

/* That of a certificate says more than "certificate verify failed". */
static const char *
reason(const struct tls_link *l)
{
	long result = SSL_get_verify_result(l->ssl);
	const char *key = tls_keys_fault();

	if (l->challenge != NULL && l->why != NULL)
		return (l->why);
	if (key != NULL)
		return (key);
	return (l->verifier != NULL && result != X509_V_OK ? X509_verify_cert_error_string(result)
							   : tls_reason());
}

static void
step(struct tls_link *l)
{
	int rc;

	tls_forget_reason();
	if (l->ssl == NULL && !make(l)) {
		l->step = TLS_FAILED;
		l->why = no_memory;
		return;
	}
	rc = SSL_do_handshake(l->ssl);
	l->step = step_after(l, rc);
	if (l->step == TLS_FAILED) {
		l->fault = tls_fault_class();
		l->why = reason(l);
	} else if (l->step == TLS_UP)
		learn(l);
	tls_forget_reason();
}

static void
step_run(struct io_job *j)
{
	step(container_of(j, struct step_job, job)->link);
	j->res = 0;
}

/* ---- on the loop */

static void
step_finish(struct io_job *j)
{
	struct tls_link *l = container_of(j, struct step_job, job)->link;
	struct io_op *op = j->op;

	if (op == NULL) {
		tls_link_free(l);
	} else if (j->res < 0) {
		(void)tls_ended(op, j->res, "no thread is free");
		io_complete(op, j->res);
	} else
		io_ready(op->io, op, OP_TRY);
	io_job_free(j);
}

/* The op has ended, and its socket may be closed before the thread returns. */
static void
step_abandoned(struct io_op *op, struct io_job *j)
{
	op->sock->transport = NULL;
}

static void
step_orphaned(struct io_job *j)
{
	tls_link_free(container_of(j, struct step_job, job)->link);
}

static bool
step_start(struct io *io, struct io_op *op)
{
	struct step_job *sj = malloc(sizeof(*sj));
	uint64_t began = op->at.submit;

	if (sj == NULL)
		return (tls_ended(op, -ENOMEM, NULL));
	io_job_init(&sj->job, io, op);
	sj->link = tls_link_of(op->sock);
	sj->link->steps++;
	sj->job.run = step_run;
	sj->job.finish = step_finish;
	sj->job.abandoned = step_abandoned;
	sj->job.orphaned = step_orphaned;
	sj->job.lane = LANE_TLS;
	io_job_start(op, &sj->job);
	op->at.submit = began; /* of the handshake, not of its last job */
	return (false);
}

/* Bytes (> 0), -EAGAIN, or -errno. */
static int64_t
receive(struct tls_link *l, struct io_sock *s)
{
	size_t room = TLS_FLIGHT_MAX - (l->in.n - l->in_at), most = room < PIECE ? room : PIECE;
	char buf[PIECE];
	ssize_t k;

	if ((s->hints & SOCK_READABLE) == 0)
		return (-EAGAIN);
	do
		k = recv(s->fd, buf, most, MSG_DONTWAIT);
	while (k < 0 && errno == EINTR);
	/* a short count: drained, as in recv_plain() of io/loop/epoll_ops.c */
	if ((k < 0 && errno == EAGAIN) ||
	    (k > 0 && (size_t)k < most && (s->hints & SOCK_HUNG) == 0))
		s->hints &= (uint8_t)~SOCK_READABLE;
	if (k <= 0)
		return (k < 0 ? -errno : -ECONNRESET);
	buf_add(&l->in, buf, (size_t)k);
	return (l->in.failed ? -ENOMEM : k);
}

/* The whole hello has come, so its host chooses the certificate. */
static void
choose(struct io_op *op)
{
	struct tls_link *l = tls_link_of(op->sock);
	const struct io_secure *with = NULL;
	char buf[TLS_NAME_MAX + 1];
	struct text host;

	host = tls_hello_name(l->in.p + l->in_at, l->in.n - l->in_at, buf);
	if (host.n != 0) {
		l->host = strndup(host.p, host.n);
		if (op->handshake.choose != NULL)
			with = op->handshake.choose(op, host);
	}
	if (with != NULL)
		tls_link_use(l, tls_secure_ctx(with));
	if (op->handshake.challenges != NULL &&
	    tls_hello_wants_challenge(l->in.p + l->in_at, l->in.n - l->in_at))
		l->challenge = tls_challenge_path(op->handshake.challenges, host);
}

/* We have said Finished, so no operation of a private key is left, nor a shared secret. */
static bool
has_finished(const struct tls_link *l)
{
	return (l->step == TLS_SHAKES && SSL_get_finished(l->ssl, NULL, 0) != 0);
}

/* A thread and its wake-ups take 0.1 ms, too, so the loop does what is as quick, within the share
 * of a round that long sends have.  Certificates of clients are for threads. */
static bool
is_quick(const struct io *io, const struct tls_link *l)
{
	if (io->long_budget <= 0 || l->verifier != NULL || l->challenge != NULL ||
	    SSL_CTX_get_verify_mode(l->ctx) != SSL_VERIFY_NONE)
		return (false);
	return (has_finished(l) || (l->step == TLS_BEGINS &&
				       tls_hello_resumes(l->in.p + l->in_at, l->in.n - l->in_at)));
}

static void
step_here(struct io *io, struct tls_link *l)
{
	l->steps++;
	l->here = true;
	step(l);
	l->here = false;
	io->budget -= STEP_HERE;
	io->long_budget -= STEP_HERE;
}

static bool
next_step(struct io *io, struct io_op *op, bool *stepped)
{
	struct tls_link *l = tls_link_of(op->sock);

	if (l->steps >= STEPS_MAX)
		return (tls_ended(op, -EPROTO, "the handshake has too many pieces"));
	if (l->step == TLS_BEGINS) {
		choose(op);
		if (l->challenge == NULL)
			l->verifier = tls_verifier_hold(op->handshake.verifier);
	}
	if (!is_quick(io, l))
		return (step_start(io, op));
	step_here(io, l);
	*stepped = true;
	return (false);
}

/* Before there is an object of OpenSSL. */
static bool
refused_alert(struct io_op *op, unsigned char alert, const char *why)
{
	const unsigned char record[] = { 21, 3, 3, 0, 2, SSL3_AL_FATAL, alert };
	struct tls_link *l = tls_link_of(op->sock);

	buf_add(&l->out, record, sizeof(record));
	(void)tls_flush(l, op->sock, false);
	return (refused(op, SHAKE_OTHER, why));
}

/* OpenSSL encrypts the alert.  It waits for some bodies of such records, so this head is made one
 * that it judges at once. */
static bool
broken(struct io *io, struct io_op *op, bool *stepped)
{
	struct tls_link *l = tls_link_of(op->sock);

	if (l->step == TLS_BEGINS)
		return (refused_alert(op, SSL_AD_RECORD_OVERFLOW, "a record of more than 16 KiB"));
	memset(l->in.p + TLS_HEAD - 2, 0xff, 2);
	return (next_step(io, op, stepped));
}

static bool
next_flight(struct io *io, struct io_op *op, bool *stepped)
{
	struct tls_link *l = tls_link_of(op->sock);
	enum tls_flight found = TLS_FLIGHT_MORE;
	int64_t k = 1;

	buf_drop(&l->in, l->in_at);
	l->in_at = 0;
	while (k > 0) {
		found = tls_flight(l->in.p, l->in.n, l->step == TLS_BEGINS, &l->in_whole);
		switch (found) {
		case TLS_FLIGHT_READY: return (next_step(io, op, stepped));
		case TLS_FLIGHT_HTTP: return (refused(op, SHAKE_HTTP, "plain HTTP"));
		case TLS_FLIGHT_NOT_TLS: return (refused(op, SHAKE_NOT_TLS, "not TLS"));
		case TLS_FLIGHT_LONG:
			return (refused_alert(op, SSL_AD_ILLEGAL_PARAMETER,
			    "a hello of more than 16 KiB"));
		case TLS_FLIGHT_BROKEN: return (broken(io, op, stepped));
		case TLS_FLIGHT_PART:
		case TLS_FLIGHT_MORE: break;
		}
		k = receive(l, op->sock);
	}
	/* The part may be of a request: it may take its time, and is for the link. */
	if (k == -EAGAIN && found == TLS_FLIGHT_PART)
		return (next_step(io, op, stepped));
	return (k == -EAGAIN ? tls_park(io, op, false) : tls_ended(op, k, NULL));
}

/* Bytes that came after the handshake are in `in`, or in OpenSSL already. */
static bool
is_up(struct io *io, struct io_op *op)
{
	struct tls_link *l = tls_link_of(op->sock);
	const unsigned char *protocol;
	unsigned n;

	l->fd = op->sock->fd;
	tls_link_guard(l);
	SSL_get0_alpn_selected(l->ssl, &protocol, &n);
	l->transport.http2 = n == 2 && memcmp(protocol, "h2", 2) == 0;
	op->sock->hints |= SOCK_READABLE;
	count(io->counters, tls_handshakes);
	op->handshake.version = (uint16_t)SSL_version(l->ssl);
	op->handshake.resumed = SSL_session_reused(l->ssl) == 1;
	op->handshake.challenge = l->challenge != NULL;
	if (op->handshake.resumed)
		count(io->counters, tls_resumed);
	op->res = 0;
	return (true);
}

/* The tickets of TLS 1.3, the last that we say, go with the first reply, or when its request is
 * still to come: a send less.  In TLS 1.2 the client waits for our last flight. */
static bool
may_wait(const struct tls_link *l)
{
	return (l->step == TLS_UP && SSL_version(l->ssl) == TLS1_3_VERSION);
}

/* Flushes, then the next step: *stepped tells that it ran here, and there may be another one. */
static bool
go_on(struct io *io, struct io_op *op, bool *stepped)
{
	struct tls_link *l = tls_link_of(op->sock);
	int err = may_wait(l) ? 0 : tls_flush(l, op->sock, false);

	if (l->step == TLS_FAILED) /* the client may have its alert */
		return (refused(op, l->fault, l->why));
	if (err == -EAGAIN)
		return (tls_park(io, op, true));
	if (err != 0)
		return (tls_ended(op, err, NULL));
	if (l->step == TLS_NEEDS_KEY)
		return (step_start(io, op));
	return (l->step == TLS_UP ? is_up(io, op) : next_flight(io, op, stepped));
}

bool
tls_try(struct io *io, struct io_op *op)
{
	bool stepped, ends;

	do {
		stepped = false;
		ends = go_on(io, op, &stepped);
	} while (stepped);
	return (ends);
}

int
tls_begin(struct io *io, struct io_op *op)
{
	struct text early = op->handshake.early;
	struct tls_link *l;

	must(op->sock->transport == NULL);
	op->handshake.why = NULL;
	op->handshake.writes = false;
	op->handshake.resumed = false;
	op->handshake.challenge = false;
	op->handshake.fault = SHAKE_OTHER;
	l = tls_link_new(tls_secure_ctx(op->handshake.with));
	if (l == NULL)
		return (-ENOMEM);
	l->http2 = op->handshake.http2;
	buf_text(&l->in, early);
	if (early.n != 0)
		op->sock->hints |= SOCK_READABLE;
	op->sock->transport = &l->transport;
	return (l->in.failed ? -ENOMEM : 0);
}
