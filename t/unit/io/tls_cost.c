/* t/unit/io/tls_cost.c -- what TLS costs: trips to a thread, sends, bytes in memory. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include "io/tls/impl.h"
#include "t/unit/io/tls_test.h"

#define RECORD 16384u
#define SMALL  1390u

static char got[400000], bytes[300000];
static size_t ngot;

static void
keep_done(struct io_op *op)
{
	if (op->res > 0) {
		memcpy(got, op->buf, (size_t)op->res);
		ngot = (size_t)op->res;
	}
	waiter_done(op);
}

static uint64_t
jobs_of_tls(void)
{
	struct io_lane_status v[LANES];

	g_assert_cmpuint(io_pools_lanes(pools, v, LANES), ==, LANES);
	return (v[LANE_TLS].jobs);
}

static bool
has_bytes(int fd)
{
	char c;

	return (recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
}

static void
receive_begin(struct waiter *w, struct io_sock *s)
{
	wait_init(w, IO_RECV, s);
	w->op.done = keep_done;
	wait_submit(w);
}

static void
receive_cancel(struct waiter *w)
{
	op_cancel(io, &w->op);
	g_assert_cmpint(wait_for(w), ==, -ECANCELED);
}

/* ---- handshakes */

/* The session of a connection that has its first reply; earlier: one to resume, or NULL. */
static SSL_SESSION *
connect_once(int version, SSL_SESSION *earlier)
{
	struct iovec reply = { (char[]){ "HTTP" }, 4 };
	SSL_SESSION *session;
	struct io_sock s;
	struct waiter w;
	struct peer p;
	char c[4];
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, version);
	if (earlier != NULL)
		SSL_set_session(p.ssl, earlier);
	g_assert_true(shake_hands(&s, &p));
	wait_init(&w, IO_SEND, &s);
	w.op.send.iov = &reply;
	w.op.send.n = 1;
	g_assert_cmpint(wait_op(&w), ==, 4);
	g_assert_cmpint(SSL_read(p.ssl, c, 4), ==, 4);
	g_assert_cmpint(SSL_session_reused(p.ssl), ==, earlier != NULL);
	session = SSL_get1_session(p.ssl);
	SSL_set_shutdown(p.ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	sock_close(&s);
	peer_free(&p);
	return (session);
}

TLS_TEST("/tls/the client's Finished needs no thread, unless a secret comes with it")
{
	SSL_SESSION_free(connect_once(TLS1_3_VERSION, NULL));
	g_assert_cmpuint(jobs_of_tls(), ==, 1);
	SSL_SESSION_free(connect_once(TLS1_2_VERSION, NULL));
	g_assert_cmpuint(jobs_of_tls(), ==, 3);
}

/* The client's first key is for a group that we do not take. */
TLS_TEST("/tls/a second hello is for a thread")
{
	struct io_sock s;
	struct peer p;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_3_VERSION);
	g_assert_cmpint(SSL_set1_groups_list(p.ssl, "P-521:X25519"), ==, 1);
	g_assert_true(shake_hands(&s, &p));
	g_assert_cmpint(shake.res, ==, 0);
	g_assert_cmpuint(jobs_of_tls(), ==, 2);
	sock_close(&s);
	peer_free(&p);
}

/* TLS 1.2 has two jobs. */
TLS_TEST("/tls/a handshake is timed from its beginning, not from its last job")
{
	struct io_sock s;
	uint64_t began;
	struct peer p;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_2_VERSION);
	shake_begin(&s, LATE_MS);
	began = shake.op.at.submit;
	while (!shake.done) {
		(void)SSL_do_handshake(p.ssl);
		go_round();
	}
	g_assert_cmpint(shake.res, ==, 0);
	g_assert_cmpuint(jobs_of_tls(), ==, 2);
	g_assert_cmpuint(shake.op.at.submit, ==, began);
	sock_close(&s);
	peer_free(&p);
}

/* A client of TLS 1.3 uses a ticket once. */
TLS_TEST("/tls/a resumed connection has a ticket for the next one")
{
	SSL_SESSION *first = connect_once(TLS1_3_VERSION, NULL), *second, *third;

	second = connect_once(TLS1_3_VERSION, first);
	g_assert_true(SSL_SESSION_is_resumable(second));
	g_assert_true(second != first);
	third = connect_once(TLS1_3_VERSION, second);
	g_assert_cmpuint(io->counters->tls_resumed, ==, 2);
	SSL_SESSION_free(first);
	SSL_SESSION_free(second);
	SSL_SESSION_free(third);
}

/* ---- a session is resumed on the loop, if no key is needed */

static const char *groups; /* of the client; NULL: those of OpenSSL */

/* The client's hello is in the socket. */
static void
hello_begin(struct io_sock *s, struct peer *p, int version, SSL_SESSION *earlier)
{
	int fd;

	unix_pair(s, &fd, 0);
	peer_init(p, fd, version);
	if (groups != NULL)
		g_assert_cmpint(SSL_set1_groups_list(p->ssl, groups), ==, 1);
	SSL_set_session(p->ssl, earlier);
	(void)SSL_do_handshake(p->ssl);
}

static uint64_t
jobs_to_resume(int version, SSL_SESSION *earlier, bool resumed)
{
	uint64_t before = jobs_of_tls();
	struct io_sock s;
	struct peer p;

	hello_begin(&s, &p, version, earlier);
	g_assert_true(shake_hands(&s, &p));
	g_assert_cmpint(shake.res, ==, 0);
	g_assert_cmpint(SSL_session_reused(p.ssl), ==, resumed);
	sock_close(&s);
	peer_free(&p);
	return (jobs_of_tls() - before);
}

TLS_TEST("/tls/a session is resumed without a thread")
{
	SSL_SESSION *session;

	session = connect_once(TLS1_3_VERSION, NULL);
	g_assert_cmpuint(jobs_to_resume(TLS1_3_VERSION, session, true), ==, 0);
	SSL_SESSION_free(session);
	session = connect_once(TLS1_2_VERSION, NULL);
	g_assert_cmpuint(jobs_to_resume(TLS1_2_VERSION, session, true), ==, 0);
	SSL_SESSION_free(session);
}

/* It is of another certificate, so the key is needed, although the client offers it. */
static void
test_refused(int version, uint64_t jobs)
{
	SSL_SESSION *session = connect_once(version, NULL);
	struct io_secure *own = secure;
	struct tls_fault fault;
	struct pem pem;

	pem_make(&pem);
	secure = secure_new(of(pem.chain), of(pem.key), NULL, 0, &fault);
	g_assert_nonnull(secure);
	g_assert_cmpuint(jobs_to_resume(version, session, false), ==, jobs);
	tls_secure_free(secure);
	secure = own;
	SSL_SESSION_free(session);
}

TLS_TEST("/tls/a session that is refused is for a thread")
{
	test_refused(TLS1_3_VERSION, 1);
	test_refused(TLS1_2_VERSION, 2);
}

TLS_TEST("/tls/a session with a secret of a slow group is for a thread")
{
	SSL_SESSION *session;

	groups = "P-384";
	session = connect_once(TLS1_3_VERSION, NULL);
	g_assert_cmpuint(jobs_to_resume(TLS1_3_VERSION, session, true), ==, 1);
	groups = "P-256";
	g_assert_cmpuint(jobs_to_resume(TLS1_3_VERSION, session, true), ==, 0);
	groups = NULL;
	SSL_SESSION_free(session);
}

/* One round finds all of them ready. */
TLS_TEST("/tls/sessions beyond the share of a round are for threads")
{
	SSL_SESSION *session = connect_once(TLS1_3_VERSION, NULL);
	struct waiter many[9];
	struct io_sock s[9];
	struct peer p[9];
	unsigned i, done = 0, threaded = 0;

	for (i = 0; i < 8; i++) {
		hello_begin(&s[i], &p[i], TLS1_3_VERSION, session);
		wait_init(&many[i], IO_HANDSHAKE, &s[i]);
		many[i].op.handshake.with = secure;
		wait_submit(&many[i]);
	}
	while (done < 8) {
		go_round();
		for (i = done = 0; i < 8; i++) {
			(void)SSL_do_handshake(p[i].ssl);
			done += many[i].done;
		}
	}
	for (i = 0; i < 8; i++) {
		g_assert_cmpint(many[i].res, ==, 0);
		threaded += many[i].op.threaded;
		sock_close(&s[i]);
		peer_free(&p[i]);
	}
	g_assert_cmpuint(threaded, ==, 4);
	g_assert_cmpuint(io->counters->tls_resumed, ==, 8);
	SSL_SESSION_free(session);
}

/* ---- the end */

/* Segments that the peer has received. */
static unsigned
segments(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	g_assert_cmpint(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), ==, 0);
	return (info.tcpi_segs_in);
}

static void
tcp_pair(struct io_sock *ours, int *peer)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);
	int on = 1;

	g_assert_cmpint(bind(listener, (struct sockaddr *)&at, len), ==, 0);
	g_assert_cmpint(listen(listener, 1), ==, 0);
	g_assert_cmpint(getsockname(listener, (struct sockaddr *)&at, &len), ==, 0);
	*peer = socket(AF_INET, SOCK_STREAM, 0);
	g_assert_cmpint(connect(*peer, (struct sockaddr *)&at, len), ==, 0);
	io_sock_init(ours, accept4(listener, NULL, NULL, SOCK_NONBLOCK));
	g_assert_cmpint(setsockopt(ours->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), ==, 0);
	close(listener);
}

TLS_TEST("/tls/the last alert and the end of the stream are one segment")
{
	struct io_sock s;
	unsigned before;
	struct peer p;
	char c;
	int fd;

	tcp_pair(&s, &fd);
	peer_init(&p, fd, TLS1_2_VERSION);
	g_assert_true(shake_hands(&s, &p));
	before = segments(fd);
	io_sock_shutdown(&s);
	g_assert_cmpint(SSL_read(p.ssl, &c, 1), <=, 0);
	g_assert_cmpint(SSL_get_shutdown(p.ssl), ==, SSL_RECEIVED_SHUTDOWN);
	g_assert_cmpint(read(fd, &c, 1), ==, 0);
	g_assert_cmpuint(segments(fd) - before, ==, 1);
	sock_close(&s);
	peer_free(&p);
}

/* ---- a receive */

static unsigned reads;

static long
count_read(BIO *b, int oper, const char *p, size_t n, int i, long l, int ret, size_t *done)
{
	reads += oper == BIO_CB_READ;
	return (ret);
}

TLS_TEST("/tls/OpenSSL is not asked again when the socket is drained")
{
	struct io_sock s;
	struct waiter w;
	struct peer p;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	BIO_set_callback_ex(SSL_get_rbio(tls_link_of(&s)->ssl), count_read);
	g_assert_cmpint(SSL_write(p.ssl, "GET", 3), ==, 3);
	reads = 0;
	receive_begin(&w, &s);
	g_assert_cmpint(wait_for(&w), ==, 3);
	g_assert_cmpuint(reads, ==, 1);
	g_assert_false(s.hints & SOCK_READABLE);
	sock_close(&s);
	peer_free(&p);
}

/* ---- tickets go with the first reply */

TLS_TEST("/tls/tickets wait for the reply to a request that is there")
{
	struct iovec reply = { (char[]){ "HTTP" }, 4 };
	struct io_sock s;
	struct waiter w;
	struct peer p;
	char c[4];

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	g_assert_false(has_bytes(p.fd));
	g_assert_cmpint(SSL_write(p.ssl, "GET", 3), ==, 3);
	receive_begin(&w, &s);
	g_assert_cmpint(wait_for(&w), ==, 3);
	g_assert_false(has_bytes(p.fd));
	wait_init(&w, IO_SEND, &s);
	w.op.send.iov = &reply;
	w.op.send.n = 1;
	g_assert_cmpint(wait_op(&w), ==, 4);
	g_assert_cmpint(SSL_read(p.ssl, c, 4), ==, 4);
	g_assert_cmpmem(c, 4, "HTTP", 4);
	sock_close(&s);
	peer_free(&p);
}

static unsigned tickets;

static int
count_ticket(SSL *ssl, SSL_SESSION *session)
{
	tickets++;
	return (0);
}

TLS_TEST("/tls/a new connection gets one ticket")
{
	struct iovec reply = { (char[]){ "HTTP" }, 4 };
	struct io_sock s;
	struct waiter w;
	struct peer p;
	char c[4];

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	SSL_CTX_set_session_cache_mode(p.ctx, SSL_SESS_CACHE_CLIENT);
	SSL_CTX_sess_set_new_cb(p.ctx, count_ticket);
	tickets = 0;
	wait_init(&w, IO_SEND, &s);
	w.op.send.iov = &reply;
	w.op.send.n = 1;
	g_assert_cmpint(wait_op(&w), ==, 4);
	g_assert_cmpint(SSL_read(p.ssl, c, 4), ==, 4);
	g_assert_cmpuint(tickets, ==, 1);
	sock_close(&s);
	peer_free(&p);
}

TLS_TEST("/tls/tickets do not wait for a request that is still to come")
{
	struct io_sock s;
	struct waiter w;
	struct peer p;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	receive_begin(&w, &s);
	while (!has_bytes(p.fd))
		go_round();
	receive_cancel(&w);
	sock_close(&s);
	peer_free(&p);
}

TLS_TEST("/tls/an alert comes, although bytes were received with what provoked it")
{
	struct io_sock s;
	struct waiter w;
	struct peer p;
	char c;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	g_assert_cmpint(SSL_write(p.ssl, "GET", 3), ==, 3);
	g_assert_cmpint(write(p.fd, "\x17\x03\x03\x00\x20????????????????????????????????", 37), ==,
	    37);
	receive_begin(&w, &s);
	g_assert_cmpint(wait_for(&w), ==, 3);
	ERR_clear_error();
	while (SSL_read(p.ssl, &c, 1) < 0 && ERR_peek_last_error() == 0)
		go_round();
	g_assert_cmpint(ERR_GET_REASON(ERR_peek_last_error()), ==,
	    SSL_R_SSLV3_ALERT_BAD_RECORD_MAC);
	ERR_clear_error();
	sock_close(&s);
	peer_free(&p);
}

/* ---- records */

static struct tls_link *
link_at(struct io_sock *s)
{
	return (container_of(s->transport, struct tls_link, transport));
}

/* What is in the socket of the peer, as it came. */
static void
take_raw(struct peer *p)
{
	ssize_t k;

	while ((k = recv(p->fd, got + ngot, sizeof(got) - ngot, MSG_DONTWAIT)) > 0)
		ngot += (size_t)k;
}

static void
send_begin(struct waiter *w, struct io_sock *s, struct iovec *iov)
{
	wait_init(w, IO_SEND, s);
	w->op.send.iov = iov;
	w->op.send.n = 1;
	wait_submit(w);
}

/* Sends n bytes, and returns how many of their records are small. */
static unsigned
small_records(struct io_sock *s, struct peer *p, size_t n)
{
	struct iovec iov = { bytes, n };
	unsigned small = 0, others = 0;
	struct waiter w;
	size_t at, length;

	ngot = 0;
	for (; iov.iov_len > 0; iov = (struct iovec){ bytes, iov.iov_len - (size_t)w.res }) {
		send_begin(&w, s, &iov);
		while (!w.done) {
			take_raw(p);
			go_round();
		}
		g_assert_cmpint(w.res, >, 0);
	}
	take_raw(p);
	for (at = 0; at < ngot; at += TLS_HEAD + length) {
		length = (size_t)(uint8_t)got[at + 3] << 8 | (uint8_t)got[at + 4];
		g_assert_true(others == 0 || length > SMALL + 17);
		small += length == SMALL + 17;
		others += length != SMALL + 17;
	}
	g_assert_cmpuint(others, <=, n / RECORD + 3);
	return (small);
}

static void
hear_request(struct io_sock *s, struct peer *p)
{
	struct waiter w;

	g_assert_cmpint(SSL_write(p->ssl, "GET", 3), ==, 3);
	receive_begin(&w, s);
	g_assert_cmpint(wait_for(&w), ==, 3);
}

TLS_TEST("/tls/records are small at first, and after an idle second")
{
	struct io_sock s;
	struct waiter w;
	struct peer p;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	receive_begin(&w, &s);
	go_round();
	receive_cancel(&w);
	take_raw(&p); /* the tickets */
	hear_request(&s, &p);
	g_assert_cmpuint(small_records(&s, &p, 10 * SMALL + 6 * RECORD), ==, 10);
	link_at(&s)->heard_ns = clock_mono_ns(); /* a busy machine may have waited */
	hear_request(&s, &p);
	g_assert_cmpuint(small_records(&s, &p, 6 * RECORD), ==, 0);
	link_at(&s)->heard_ns -= NS_PER_S + NS_PER_MS;
	hear_request(&s, &p);
	g_assert_cmpuint(small_records(&s, &p, 6 * RECORD), ==, 10);
	sock_close(&s);
	peer_free(&p);
}

/* ---- a client that reads slowly */

/* Ours sends until the socket is full, then the client takes a little.  The memory of what waits,
 * at most: of the first batch, and later. */
static void
stall(int send_buffer, size_t most[2])
{
	struct iovec iov = { bytes, sizeof(bytes) };
	const struct tls_link *l;
	struct io_sock s;
	struct waiter w;
	struct peer p;
	size_t sent = 0, first = 0;
	int64_t n;

	tls_pair(&s, &p, send_buffer, TLS1_3_VERSION);
	l = tls_link_of(&s);
	wait_init(&w, IO_SEND, &s);
	w.op.send.iov = &iov;
	w.op.send.n = 1;
	w.op.deadline_ms = 5;
	most[0] = most[1] = 0;
	while (sent < 200000) {
		while ((n = wait_op(&w)) > 0) {
			sent += (size_t)n;
			iov = (struct iovec){ bytes + sent, sizeof(bytes) - sent };
		}
		g_assert_cmpint(n, ==, -ETIMEDOUT);
		g_assert_cmpuint(l->out.cap, <=, 4 * (l->out.n - l->out_at) / 3 + 256);
		first = first != 0 ? first : sent;
		most[sent != first] = MAX(most[sent != first], l->out.cap);
		g_assert_cmpint(recv(p.fd, got, RECORD / 2, 0), >, 0);
	}
	sock_close(&s);
	peer_free(&p);
}

TLS_TEST("/tls/what waits for a slow client has memory of its size")
{
	size_t most[2];

	stall(4096, most);
	g_assert_cmpuint(most[0], >, 3 * RECORD); /* nobody knew */
	g_assert_cmpuint(most[1], <=, RECORD + 2048);
	stall(40000, most);
	g_assert_cmpuint(most[1], <=, 2 * RECORD + 2048);
}
