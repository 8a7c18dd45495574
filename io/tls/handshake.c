/* io/tls/handshake.c -- IO_HANDSHAKE: the loop moves bytes, threads compute.
 *
 *   loop     receive until a flight is whole --> job           send --> park, or the end
 *   thread                                        SSL_do_handshake()
 *
 * A private-key operation takes 0.1 to 5 ms, in which a loop would answer hundreds of requests.
 * The threads are those of LANE_TLS; the clients take turns.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "io/disk/job.h"
#include "io/engine.h"
#include "io/tls/flight.h"
#include "io/tls/hello.h"
#include "io/tls/impl.h"

/* A handshake has two to four flights.  A client that sends each byte as a record of its own gets
 * no thread for each. */
#define STEPS_MAX 64u
#define PIECE     4096u

struct step_job {
	struct io_job job;
	struct tls_link *link;
};

static struct tls_link *
link_of(const struct io_op *op)
{
	return (container_of(op->sock->transport, struct tls_link, transport));
}

static bool
ended(struct io_op *op, int64_t res, const char *why)
{
	count(op->io->counters, tls_failed);
	op->handshake.why = why;
	op->res = res;
	return (true);
}

/* ---- in a thread */

static bool
make(struct tls_link *l)
{
	BIO *b;

	l->ssl = SSL_new(l->ctx);
	b = l->ssl != NULL ? tls_bio_new(l) : NULL;
	if (b == NULL)
		return (false);
	SSL_set_bio(l->ssl, b, b);
	SSL_set_accept_state(l->ssl);
	return (true);
}

static void
step(struct tls_link *l)
{
	int rc;

	ERR_clear_error();
	if (l->ssl == NULL && !make(l)) {
		l->step = TLS_FAILED;
		l->why = "not enough memory";
		return;
	}
	rc = SSL_do_handshake(l->ssl);
	if (rc == 1)
		l->step = TLS_UP;
	else if (SSL_get_error(l->ssl, rc) == SSL_ERROR_WANT_READ)
		l->step = TLS_SHAKES;
	else {
		l->step = TLS_FAILED;
		l->why = tls_reason();
	}
	ERR_clear_error();
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
		(void)ended(op, j->res, "too many handshakes wait for a thread");
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

	if (sj == NULL)
		return (ended(op, -ENOMEM, NULL));
	io_job_init(&sj->job, io, op);
	sj->link = link_of(op);
	sj->link->steps++;
	sj->job.run = step_run;
	sj->job.finish = step_finish;
	sj->job.abandoned = step_abandoned;
	sj->job.orphaned = step_orphaned;
	sj->job.lane = LANE_TLS;
	io_job_start(op, &sj->job);
	return (false);
}

/* Bytes (> 0), -EAGAIN, or -errno. */
static int64_t
receive(struct tls_link *l, struct io_sock *s)
{
	size_t room = TLS_FLIGHT_MAX - (l->in.n - l->in_at);
	char buf[PIECE];
	ssize_t k;

	do
		k = recv(s->fd, buf, room < PIECE ? room : PIECE, MSG_DONTWAIT);
	while (k < 0 && errno == EINTR);
	if (k < 0 && errno == EAGAIN)
		s->hints &= (uint8_t)~SOCK_READABLE;
	if (k <= 0)
		return (k < 0 ? -errno : -ECONNRESET);
	buf_add(&l->in, buf, (size_t)k);
	return (l->in.failed ? -ENOMEM : k);
}

static bool
park(struct io *io, struct io_op *op, bool writes)
{
	op->handshake.writes = writes;
	io->calls->park(io, op);
	return (false);
}

/* The hello is there: the certificate is that of the host that it names. */
static void
choose(struct io_op *op)
{
	struct tls_link *l = link_of(op);
	const struct io_secure *with;
	char buf[TLS_NAME_MAX + 1];
	struct text host;

	if (op->handshake.choose == NULL)
		return;
	host = tls_hello_name(l->in.p + l->in_at, l->in.n - l->in_at, buf);
	with = host.n != 0 ? op->handshake.choose(op, host) : NULL;
	if (with != NULL)
		tls_link_use(l, container_of(with, struct tls_secure, secure)->ctx);
}

static bool
next_flight(struct io *io, struct io_op *op)
{
	struct tls_link *l = link_of(op);
	int64_t k = 1;

	while (k > 0) {
		switch (tls_flight(l->in.p + l->in_at, l->in.n - l->in_at, l->step == TLS_BEGINS)) {
		case TLS_FLIGHT_READY:
			if (l->step == TLS_BEGINS)
				choose(op);
			return (l->steps < STEPS_MAX
				    ? step_start(io, op)
				    : ended(op, -EPROTO, "the handshake has too many pieces"));
		case TLS_FLIGHT_HTTP: return (ended(op, -EPROTO, "plain HTTP"));
		case TLS_FLIGHT_NOT_TLS: return (ended(op, -EPROTO, "not TLS"));
		case TLS_FLIGHT_LONG: return (ended(op, -EPROTO, "a hello of more than 16 KiB"));
		case TLS_FLIGHT_MORE: break;
		}
		k = receive(l, op->sock);
	}
	return (k == -EAGAIN ? park(io, op, false) : ended(op, k, NULL));
}

/* Bytes that came after the handshake are in `in`, or in OpenSSL already. */
static bool
is_up(struct io *io, struct io_op *op)
{
	struct tls_link *l = link_of(op);

	l->fd = op->sock->fd;
	tls_link_guard(l);
	op->sock->hints |= SOCK_READABLE;
	count(io->counters, tls_handshakes);
	if (SSL_session_reused(l->ssl))
		count(io->counters, tls_resumed);
	op->res = 0;
	return (true);
}

bool
tls_try(struct io *io, struct io_op *op)
{
	struct tls_link *l = link_of(op);
	int err = tls_flush(l, op->sock, false);

	if (l->step == TLS_FAILED) /* the client may have its alert */
		return (ended(op, -EPROTO, l->why));
	if (err == -EAGAIN)
		return (park(io, op, true));
	if (err != 0)
		return (ended(op, err, NULL));
	return (l->step == TLS_UP ? is_up(io, op) : next_flight(io, op));
}

int
tls_begin(struct io *io, struct io_op *op)
{
	const struct tls_secure *with = container_of(op->handshake.with, struct tls_secure, secure);
	struct text early = op->handshake.early;
	struct tls_link *l;

	must(op->sock->transport == NULL);
	op->handshake.why = NULL;
	op->handshake.writes = false;
	l = tls_link_new(with->ctx);
	if (l == NULL)
		return (-ENOMEM);
	buf_text(&l->in, early);
	if (early.n != 0)
		op->sock->hints |= SOCK_READABLE;
	op->sock->transport = &l->transport;
	return (l->in.failed ? -ENOMEM : 0);
}
