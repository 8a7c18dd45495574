/* t/unit/io/tls.c -- TLS: handshakes in threads, bytes both ways, ends; and clients that stop, send
 * other things, or leave. */
#include <malloc.h>
#include "io/tls/facts.h"
#include "io/tls/hello.h"
#include "io/tls/tickets.h"
#include "io/tls/verifier.h"
#include "t/unit/io/tls_test.h"

#define MANY 300000u

static char got[MANY];
static size_t ngot;

static void
keep_done(struct io_op *op)
{
	if (op->res > 0) {
		g_assert_cmpuint(ngot + (size_t)op->res, <=, MANY);
		memcpy(got + ngot, op->buf, (size_t)op->res);
		ngot += (size_t)op->res;
	}
	waiter_done(op);
}

static char *
bytes_new(size_t n)
{
	char *p = malloc(n);
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = pattern(i);
	return (p);
}

/* ---- bytes */

/* The client sends n bytes in pieces; ours receives all of them. */
static void
take_pieces(struct io_sock *s, struct peer *p, const char *bytes, size_t n, size_t piece)
{
	struct waiter w;
	size_t sent = 0, k;

	ngot = 0;
	wait_init(&w, IO_RECV, s);
	w.op.done = keep_done;
	w.done = true;
	while (ngot < n) {
		if (w.done)
			wait_submit(&w);
		while (
		    sent < n && SSL_write_ex(p->ssl, bytes + sent, MIN(piece, n - sent), &k) == 1)
			sent += k;
		go_round();
	}
	if (!w.done) {
		op_cancel(io, &w.op);
		g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	}
	g_assert_cmpmem(got, ngot, bytes, n);
}

static void
take(struct io_sock *s, struct peer *p, const char *bytes, size_t n)
{
	take_pieces(s, p, bytes, n, n);
}

/* Reads what has come.  False: the end. */
static bool
peer_read(struct peer *p)
{
	size_t k;
	int rc;

	while ((rc = SSL_read_ex(p->ssl, got + ngot, MANY - ngot, &k)) == 1)
		ngot += k;
	return (SSL_get_error(p->ssl, rc) == SSL_ERROR_WANT_READ);
}

/* Ours sends n bytes in three pieces, and the client reads them. */
static void
give(struct io_sock *s, struct peer *p, char *bytes, size_t n)
{
	struct iovec iov[3];
	struct waiter w;
	size_t sent = 0;

	ngot = 0;
	wait_init(&w, IO_SEND, s);
	w.op.send.iov = iov;
	while (sent < n || ngot < n) {
		if (sent < n && !w.op.state) {
			size_t left = n - sent;

			iov[0] = (struct iovec){ bytes + sent, left / 3 };
			iov[1] = (struct iovec){ bytes + sent + left / 3, left / 3 };
			iov[2] = (struct iovec){ bytes + sent + left / 3 * 2, left - left / 3 * 2 };
			w.op.send.n = 3;
			wait_submit(&w);
		}
		go_round();
		if (w.done) {
			g_assert_cmpint(w.res, >, 0);
			sent += (size_t)w.res;
			w.done = false;
		}
		g_assert_true(peer_read(p));
	}
	g_assert_cmpuint(sent, ==, n);
	g_assert_cmpmem(got, ngot, bytes, n);
}

static void
test_bytes(int version, int send_buffer)
{
	static const size_t sizes[] = { 1, 2, 100, 16383, 16384, 16385, 70000, MANY };
	char *bytes = bytes_new(MANY);
	struct io_sock s;
	struct peer p;
	size_t i;

	tls_pair(&s, &p, send_buffer, version);
	for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
		give(&s, &p, bytes, sizes[i]);
		take(&s, &p, bytes, sizes[i]);
	}
	g_assert_cmpuint(io->counters->tls_handshakes, ==, 1);
	sock_close(&s);
	peer_free(&p);
	free(bytes);
}

TLS_TEST("/tls/bytes of any number pass both ways, TLS 1.3")
{
	test_bytes(TLS1_3_VERSION, 0);
}

TLS_TEST("/tls/bytes of any number pass both ways, TLS 1.2")
{
	test_bytes(TLS1_2_VERSION, 0);
}

TLS_TEST("/tls/bytes of any number pass a socket that is full")
{
	test_bytes(TLS1_3_VERSION, 4096);
}

TLS_TEST("/tls/records of one byte pass")
{
	char *bytes = bytes_new(1000);
	struct io_sock s;
	struct peer p;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	take_pieces(&s, &p, bytes, 1000, 1);
	sock_close(&s);
	peer_free(&p);
	free(bytes);
}

/* The client does not read.  The rest is owed, and comes before other bytes. */
TLS_TEST("/tls/a send reports all but a byte while the socket is full")
{
	char *bytes = bytes_new(MANY);
	struct iovec iov = { bytes, MANY };
	struct io_sock s;
	struct waiter w;
	struct peer p;
	size_t sent = 0;
	int64_t n;

	tls_pair(&s, &p, 4096, TLS1_3_VERSION);
	wait_init(&w, IO_SEND, &s);
	w.op.send.iov = &iov;
	w.op.send.n = 1;
	w.op.deadline_ms = 50;
	while ((n = wait_op(&w)) > 0) {
		sent += (size_t)n;
		iov = (struct iovec){ bytes + sent, MANY - sent };
	}
	g_assert_cmpint(n, ==, -ETIMEDOUT);
	g_assert_cmpuint(sent, <, MANY);
	iov.iov_len = 1; /* the owed one alone */
	w.op.deadline_ms = 0;
	wait_submit(&w);
	ngot = 0;
	while (!w.done) {
		g_assert_true(peer_read(&p));
		go_round();
	}
	g_assert_cmpint(w.res, ==, 1);
	g_assert_true(peer_read(&p));
	g_assert_cmpmem(got, ngot, bytes, sent + 1);
	sock_close(&s);
	peer_free(&p);
	free(bytes);
}

/* ---- the end */

static void
test_end(bool cuts)
{
	struct io_sock s;
	struct waiter w;
	struct peer p;
	int error;
	char c;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	wait_init(&w, IO_CLOSE, &s);
	w.op.cuts = cuts;
	g_assert_cmpint(wait_op(&w), ==, 0);
	error = SSL_get_error(p.ssl, SSL_read(p.ssl, &c, 1));
	if (cuts)
		g_assert_cmpint(error, !=, SSL_ERROR_ZERO_RETURN);
	else
		g_assert_cmpint(error, ==, SSL_ERROR_ZERO_RETURN);
	peer_free(&p);
}

TLS_TEST("/tls/a close says that nothing is missing")
{
	test_end(false);
}

TLS_TEST("/tls/a cut does not")
{
	test_end(true);
}

TLS_TEST("/tls/the client's end is an end, with an alert or without")
{
	struct io_sock s;
	struct waiter w;
	struct peer p;
	int i;

	for (i = 0; i < 2; i++) {
		tls_pair(&s, &p, 0, TLS1_3_VERSION);
		wait_init(&w, IO_RECV, &s);
		if (i == 0)
			SSL_shutdown(p.ssl);
		else
			shutdown(p.fd, SHUT_WR);
		g_assert_cmpint(wait_op(&w), ==, 0);
		sock_close(&s);
		peer_free(&p);
	}
}

TLS_TEST("/tls/a broken record ends the connection")
{
	struct io_sock s;
	struct waiter w;
	struct peer p;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	g_assert_cmpint(write(p.fd, "\x17\x03\x03\x00\x20????????????????????????????????", 37), ==,
	    37);
	wait_init(&w, IO_RECV, &s);
	g_assert_cmpint(wait_op(&w), ==, -EPROTO);
	g_assert_cmpint(wait_op(&w), ==, -EPROTO);
	sock_close(&s);
	peer_free(&p);
}

/* A client of TLS 1.2 that asks for another handshake gets a refusal, and no thread. */
TLS_TEST("/tls/no client renegotiates")
{
	struct io_sock s;
	struct waiter w;
	struct peer p;

	tls_pair(&s, &p, 0, TLS1_2_VERSION);
	g_assert_cmpint(SSL_renegotiate(p.ssl), ==, 1);
	g_assert_cmpint(SSL_do_handshake(p.ssl), !=, 1);
	wait_init(&w, IO_RECV, &s);
	w.op.deadline_ms = 20;
	g_assert_cmpint(wait_op(&w), <, 0);
	g_assert_cmpint(SSL_do_handshake(p.ssl), !=, 1);
	g_assert_cmpuint(io->counters->tls_handshakes, ==, 1);
	sock_close(&s);
	peer_free(&p);
}

/* Updates of keys as many as the socket takes, and this many at least. */
static void
change_keys(struct peer *p, unsigned least, unsigned most)
{
	unsigned i;

	for (i = 0; i < most; i++)
		if (SSL_key_update(p->ssl, SSL_KEY_UPDATE_REQUESTED) != 1 ||
		    SSL_do_handshake(p->ssl) != 1)
			break;
	g_assert_cmpuint(i, >=, least);
}

/* OpenSSL has no bound of its own. */
TLS_TEST("/tls/a client that changes its keys without end is cut")
{
	char *bytes = bytes_new(100);
	struct io_sock s;
	struct waiter w;
	struct peer p;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	change_keys(&p, 10, 10);
	take(&s, &p, bytes, 100);
	give(&s, &p, bytes, 100);
	change_keys(&p, 100, UINT_MAX);
	wait_init(&w, IO_RECV, &s);
	w.op.deadline_ms = LATE_MS;
	g_assert_cmpint(wait_op(&w), ==, -EPROTO);
	g_assert_cmpint(wait_op(&w), ==, -EPROTO);
	sock_close(&s);
	peer_free(&p);
	free(bytes);
}

/* ---- handshakes that fail */

/* The client's hello, as bytes. */
static size_t
hello(char *dst, size_t max)
{
	struct io_sock s;
	struct peer p;
	ssize_t n;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_3_VERSION);
	g_assert_cmpint(SSL_do_handshake(p.ssl), !=, 1);
	n = read(s.fd, dst, max);
	g_assert_cmpint(n, >, 100);
	sock_close(&s);
	peer_free(&p);
	return ((size_t)n);
}

TLS_TEST("/tls/a client that leaves at any byte of its hello costs nothing")
{
	char bytes[4096];
	size_t n = hello(bytes, sizeof(bytes)), i;
	struct io_sock s;
	int fd;

	for (i = 0; i < n; i++) {
		unix_pair(&s, &fd, 0);
		g_assert_cmpint(write(fd, bytes, i), ==, (ssize_t)i);
		shake_begin(&s, LATE_MS);
		go_round();
		close(fd);
		g_assert_cmpint(wait_for(&shake), ==, -ECONNRESET);
		g_assert_cmpuint(shake.op.threaded, ==, 0);
		sock_close(&s);
	}
}

TLS_TEST("/tls/a client that stops has one deadline for all steps")
{
	char bytes[4096];
	size_t n = hello(bytes, sizeof(bytes));
	uint64_t expires;
	struct io_sock s;
	int fd;

	unix_pair(&s, &fd, 0);
	shake_begin(&s, 20);
	g_assert_cmpint(wait_for(&shake), ==, -ETIMEDOUT); /* it has sent nothing */
	sock_close(&s);
	close(fd);
	unix_pair(&s, &fd, 0);
	shake_begin(&s, 60000);
	expires = shake.op.expires_ns;
	g_assert_cmpint(write(fd, bytes, n), ==, (ssize_t)n);
	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
		go_round(); /* it gets our flight, and is silent */
	g_assert_false(shake.done);
	g_assert_true(list_linked(&shake.op.timer));
	g_assert_cmpuint(shake.op.expires_ns, ==, expires);
	op_cancel(io, &shake.op);
	g_assert_cmpint(wait_for(&shake), ==, -ECANCELED);
	close(fd);
	sock_close(&s);
}

static void
test_not_tls(const char *bytes, size_t n, enum io_handshake_fault fault, const char *why)
{
	char alert[16];
	struct io_sock s;
	int fd;

	unix_pair(&s, &fd, 0);
	g_assert_cmpint(write(fd, bytes, n), ==, (ssize_t)n);
	shake_begin(&s, LATE_MS);
	g_assert_cmpint(wait_for(&shake), ==, -EPROTO);
	g_assert_cmpstr(shake.op.handshake.why, ==, why);
	g_assert_cmpint(shake.op.handshake.fault, ==, fault);
	/* an alert, and the end */
	sock_close(&s);
	g_assert_cmpint(read(fd, alert, sizeof(alert)), ==, fault == SHAKE_OTHER ? 7 : 0);
	close(fd);
}

TLS_TEST("/tls/a client that speaks plain HTTP, or none")
{
	test_not_tls("GET / HTTP/1.1\r\n", 16, SHAKE_HTTP, "plain HTTP");
	test_not_tls("\0\1\2\3\4\5", 6, SHAKE_NOT_TLS, "not TLS");
	test_not_tls("\x16\x03\x01\x00\x04\x01\x01\x00\x00", 9, SHAKE_OTHER,
	    "a hello of more than 16 KiB");
	test_not_tls("\x16\x03\x01\x40\x01\x01", 6, SHAKE_OTHER, "a record of more than 16 KiB");
}

/* head: of a record whose bytes never come, after a hello. */
static void
test_broken(int version, const char *head)
{
	BIO *out = BIO_new(BIO_s_mem());
	struct io_sock s;
	struct peer p;
	char c;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, version);
	shake_begin(&s, 5000);
	g_assert_cmpint(SSL_do_handshake(p.ssl), <=, 0); /* the hello */
	SSL_set0_wbio(p.ssl, out);
	while (recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
		go_round();
	g_assert_cmpint(write(fd, head, TLS_HEAD), ==, TLS_HEAD);
	g_assert_cmpint(wait_for(&shake), ==, -EPROTO);
	ERR_clear_error();
	if (SSL_do_handshake(p.ssl) == 1)
		g_assert_cmpint(SSL_read(p.ssl, &c, 1), <=, 0);
	g_assert_cmpint(ERR_GET_REASON(ERR_peek_last_error()), ==,
	    SSL_R_TLSV1_ALERT_RECORD_OVERFLOW);
	ERR_clear_error();
	sock_close(&s);
	peer_free(&p);
}

TLS_TEST("/tls/a record that is too long gets an alert at once")
{
	test_broken(TLS1_2_VERSION, "\x16\x03\x03\x40\x01");
	test_broken(TLS1_2_VERSION, "\x17\x03\x03\xff\xff");
	test_broken(TLS1_3_VERSION, "\x17\x03\x03\x41\x01");
}

TLS_TEST("/tls/an old client gets an alert")
{
	struct io_sock s;
	struct peer p;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_1_VERSION);
	g_assert_false(shake_hands(&s, &p));
	g_assert_cmpint(shake.res, ==, -EPROTO);
	g_assert_cmpstr(shake.op.handshake.why, ==, "unsupported protocol");
	ERR_clear_error();
	g_assert_cmpint(SSL_do_handshake(p.ssl), <=, 0);
	g_assert_cmpint(ERR_GET_REASON(ERR_peek_last_error()), ==,
	    SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
	sock_close(&s);
	peer_free(&p);
}

/* The thread has it, or it waits for one. */
static void
test_cancelled(bool waits)
{
	char bytes[4096];
	size_t n = hello(bytes, sizeof(bytes));
	struct io_sock s;
	int fd;

	if (waits)
		gate_enter(LANE_TLS);
	unix_pair(&s, &fd, 0);
	g_assert_cmpint(write(fd, bytes, n), ==, (ssize_t)n);
	shake_begin(&s, LATE_MS);
	go_round();
	op_cancel(io, &shake.op);
	g_assert_cmpint(wait_for(&shake), ==, -ECANCELED);
	sock_close(&s);
	close(fd);
	if (waits)
		gate_leave();
	run_ms(5);
}

TLS_TEST("/tls/a handshake is cancelled while a thread has it")
{
	test_cancelled(false);
}

TLS_TEST("/tls/a handshake is cancelled while it waits for a thread")
{
	test_cancelled(true);
}

TLS_TEST("/tls/a full queue refuses")
{
	struct waiter many[9];
	struct io_sock s[9];
	char bytes[4096];
	size_t n = hello(bytes, sizeof(bytes)), i;
	int fd[9];

	gate_enter(LANE_TLS);
	for (i = 0; i < 9; i++) {
		unix_pair(&s[i], &fd[i], 0);
		g_assert_cmpint(write(fd[i], bytes, n), ==, (ssize_t)n);
		wait_init(&many[i], IO_HANDSHAKE, &s[i]);
		many[i].op.handshake.with = secure;
		wait_submit(&many[i]);
	}
	g_assert_cmpint(wait_for(&many[8]), ==, -EAGAIN);
	for (i = 0; i < 8; i++) {
		g_assert_false(many[i].done);
		op_cancel(io, &many[i].op);
		g_assert_cmpint(wait_for(&many[i]), ==, -ECANCELED);
	}
	gate_leave();
	for (i = 0; i < 9; i++) {
		sock_close(&s[i]);
		close(fd[i]);
	}
}

/* ---- bytes that came early, or late */

TLS_TEST("/tls/bytes received before the handshake are its first")
{
	char bytes[4096];
	struct io_sock s;
	struct peer p;
	ssize_t n;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_3_VERSION);
	(void)SSL_do_handshake(p.ssl);
	n = read(s.fd, bytes, sizeof(bytes));
	g_assert_cmpint(n, >, 0);
	wait_init(&shake, IO_HANDSHAKE, &s);
	shake.op.handshake.with = secure;
	shake.op.handshake.early = (struct text){ bytes, (size_t)n };
	wait_submit(&shake);
	memset(bytes, 0, sizeof(bytes)); /* they were copied */
	while (!shake.done) {
		(void)SSL_do_handshake(p.ssl);
		go_round();
	}
	g_assert_cmpint(shake.res, ==, 0);
	sock_close(&s);
	peer_free(&p);
}

/* Each byte of the client is a write of its own, and its request follows at once. */
TLS_TEST("/tls/a handshake byte by byte, and a request at once")
{
	BIO *out = BIO_new(BIO_s_mem());
	struct io_sock s;
	struct waiter w;
	struct peer p;
	bool up = false;
	char c;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_3_VERSION);
	SSL_set0_wbio(p.ssl, out);
	shake_begin(&s, LATE_MS);
	while (!shake.done) {
		if (!up && SSL_do_handshake(p.ssl) == 1) {
			up = true;
			g_assert_cmpint(SSL_write(p.ssl, "GET", 3), ==, 3);
		}
		while (BIO_read(out, &c, 1) == 1) {
			g_assert_cmpint(write(fd, &c, 1), ==, 1);
			go_round();
		}
		go_round();
	}
	g_assert_cmpint(shake.res, ==, 0);
	wait_init(&w, IO_RECV, &s);
	w.op.done = keep_done;
	ngot = 0;
	g_assert_cmpint(wait_op(&w), ==, 3);
	g_assert_cmpmem(got, 3, "GET", 3);
	sock_close(&s);
	peer_free(&p);
}

/* What the peer has written, in the socket: n bytes, or all. */
static size_t
pass_on(BIO *out, int fd, size_t n)
{
	char bytes[20000];
	int k = BIO_read(out, bytes, (int)MIN(n, sizeof(bytes)));

	g_assert_true(k <= 0 || write(fd, bytes, (size_t)k) == k);
	return (k > 0 ? (size_t)k : 0);
}

static bool
is_answered(struct peer *p)
{
	char c;

	return (recv(p->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
}

/* The rest of a body's first record comes when it likes. */
TLS_TEST("/tls/a handshake does not wait for the record that follows it")
{
	BIO *out = BIO_new(BIO_s_mem());
	size_t sent = 0, finished;
	struct io_sock s;
	struct waiter w;
	struct peer p;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_3_VERSION);
	SSL_set0_wbio(p.ssl, out);
	shake_begin(&s, 5000);
	while (SSL_do_handshake(p.ssl) != 1) {
		finished = pass_on(out, fd, SIZE_MAX);
		if (sent == 0) /* of the record that changes ciphers, which changes nothing */
			g_assert_cmpint(write(fd, "\x14\x03\x03", 3), ==, 3);
		while (!is_answered(&p))
			go_round();
		if (sent == 0)
			g_assert_cmpint(write(fd, "\x00\x01\x01", 3), ==, 3);
		sent += finished;
	}
	finished = BIO_pending(out);
	memset(got, 'b', 10000);
	g_assert_cmpint(SSL_write(p.ssl, got, 10000), ==, 10000);
	(void)pass_on(out, fd, finished + 5000);
	while (!shake.done)
		go_round();
	g_assert_cmpint(shake.res, ==, 0);
	wait_init(&w, IO_RECV, &s);
	w.op.done = keep_done;
	w.op.deadline_ms = 5000;
	ngot = 0;
	wait_submit(&w);
	go_round();
	g_assert_false(w.done);
	(void)pass_on(out, fd, SIZE_MAX);
	while (!w.done)
		go_round();
	g_assert_cmpuint(ngot, ==, 10000);
	sock_close(&s);
	peer_free(&p);
}

/* The event of the first read has brought both records. */
TLS_TEST("/tls/bytes that OpenSSL holds make the next receive ready")
{
	char *bytes = bytes_new(100000);
	struct io_sock s;
	struct waiter w;
	struct peer p;
	size_t k;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	g_assert_cmpint(SSL_write_ex(p.ssl, bytes, 10000, &k), ==, 1);
	wait_init(&w, IO_RECV, &s);
	w.op.done = keep_done;
	w.op.little = 1;
	w.op.deadline_ms = LATE_MS;
	ngot = 0;
	while (ngot < 10000) {
		g_assert_false(io_sock_alive(&s)); /* it has sent something */
		g_assert_cmpint(wait_op(&w), >, 0);
	}
	g_assert_true(io_sock_alive(&s));
	g_assert_cmpmem(got, ngot, bytes, 10000);
	sock_close(&s);
	peer_free(&p);
	free(bytes);
}

/* Bytes that OpenSSL holds move, too. */
TLS_TEST("/tls/a connection moves to another descriptor")
{
	char *bytes = bytes_new(20000);
	struct io_sock s, t;
	struct waiter w;
	struct peer p;
	size_t k;

	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	g_assert_cmpint(SSL_write_ex(p.ssl, bytes, 10000, &k), ==, 1);
	wait_init(&w, IO_RECV, &s);
	w.op.done = keep_done;
	w.op.little = 1;
	ngot = 0;
	g_assert_cmpint(wait_op(&w), ==, 4096);
	io_sock_init(&t, io_sock_dup(&s));
	io_sock_plug(&t, io_sock_unplug(&s));
	sock_close(&s);
	w.op.sock = &t;
	while (ngot < 10000)
		g_assert_cmpint(wait_op(&w), >, 0);
	g_assert_cmpmem(got, ngot, bytes, 10000);
	give(&t, &p, bytes, 20000);
	take(&t, &p, bytes, 20000);
	sock_close(&t);
	peer_free(&p);
	free(bytes);
}

TLS_TEST("/tls/a connection stays while its records wait for the socket")
{
	char *bytes = bytes_new(MANY);
	struct iovec iov = { bytes, MANY };
	struct io_sock s;
	struct waiter w;
	struct peer p;

	tls_pair(&s, &p, 4096, TLS1_3_VERSION);
	wait_init(&w, IO_SEND, &s);
	w.op.send.iov = &iov;
	w.op.send.n = 1;
	g_assert_cmpint(wait_op(&w), >, 0);
	g_assert_cmpint(io_sock_dup(&s), ==, -EBUSY);
	sock_close(&s);
	peer_free(&p);
	free(bytes);
}

/* ---- certificates */

static void
refused(struct text chain, struct text key, bool of_key, const char *why)
{
	struct tls_fault fault;

	g_assert_null(secure_new(chain, key, NULL, 0, &fault));
	g_assert_cmpint(fault.of, ==, of_key ? TLS_OF_KEY : TLS_OF_CHAIN);
	g_assert_nonnull(strstr(fault.why, why));
}

TEST("/tls/a certificate and a key must belong together")
{
	struct tls_fault fault;
	struct io_secure *s;
	struct pem a, b;
	char both[8192];

	pem_make(&a);
	pem_make(&b);
	refused(of(a.chain), of(b.key), true, "does not belong");
	refused(TEXT(""), of(a.key), false, "no certificate");
	refused(of("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"), of(a.key), false,
	    "cannot be read");
	refused(of(a.chain), TEXT(""), true, "no key");
	refused(of(a.chain), TEXT_NONE, true, "no key");
	snprintf(both, sizeof(both), "%s%s", a.key, a.chain);
	s = secure_new(of(both), TEXT_NONE, NULL, 0, &fault);
	g_assert_nonnull(s);
	tls_secure_free(s);
	snprintf(both, sizeof(both), "%s%s", a.chain, b.chain); /* a chain of two */
	s = secure_new(of(both), of(a.key), NULL, 0, &fault);
	g_assert_nonnull(s);
	tls_secure_free(s);
}

static X509 *
shown_to(struct peer *p, struct io_sock *s)
{
	tls_pair(s, p, 0, TLS1_3_VERSION);
	return (SSL_get1_peer_certificate(p->ssl));
}

static struct io_secure *
another(void)
{
	struct tls_fault fault;
	struct pem pem;

	pem_make(&pem);
	return (secure_new(of(pem.chain), of(pem.key), NULL, 0, &fault));
}

TLS_TEST("/tls/a certificate is replaced for new connections")
{
	struct io_sock old, next;
	struct peer o, n;
	X509 *first = shown_to(&o, &old), *second;
	uint64_t now_s = (uint64_t)time(NULL), ends_s = tls_secure_ends_s(secure);

	g_assert_true(ends_s > now_s + 3000 && ends_s < now_s + 4000);
	tls_secure_renew(secure, another());
	second = shown_to(&n, &next);
	g_assert_cmpint(X509_cmp(first, second), !=, 0);
	take(&old, &o, "still here", 10);
	X509_free(first);
	X509_free(second);
	sock_close(&old);
	sock_close(&next);
	peer_free(&o);
	peer_free(&n);
}

static int
version_with(const struct tls_command *commands, size_t n)
{
	struct io_secure *own = secure;
	struct tls_fault fault;
	struct io_sock s;
	struct peer p;
	struct pem pem;
	int version;

	pem_make(&pem);
	secure = secure_new(of(pem.chain), of(pem.key), commands, n, &fault);
	g_assert_nonnull(secure);
	tls_pair(&s, &p, 0, TLS1_3_VERSION);
	version = SSL_version(p.ssl);
	sock_close(&s);
	peer_free(&p);
	tls_secure_free(secure);
	secure = own;
	return (version);
}

TLS_TEST("/tls/commands of OpenSSL change the defaults")
{
	const struct tls_command old = { "MaxProtocol", "TLSv1.2" }, bad[] = {
		{ "Curves", "X25519" },
		{ "MaxProtocol", "fast" },
	};
	struct tls_fault fault;

	g_assert_cmpint(version_with(NULL, 0), ==, TLS1_3_VERSION);
	g_assert_cmpint(version_with(&old, 1), ==, TLS1_2_VERSION);
	g_assert_null(secure_new(TEXT(""), TEXT(""), bad, 2, &fault));
	g_assert_cmpint(fault.of, ==, TLS_OF_COMMANDS);
	g_assert_nonnull(strstr(fault.why, "\"MaxProtocol\" => \"fast\": "));
}

/* ---- tickets */

TEST("/tls/keys of tickets change, and stay while tickets are valid")
{
	const uint64_t period = TLS_TICKET_S * NS_PER_S;
	struct tls_ticket_key first, k;
	uint64_t now = clock_mono_ns();
	unsigned i;
	bool old;

	g_assert_true(tls_ticket_newest(now, &first));
	now = first.made_ns;
	g_assert_true(tls_ticket_newest(now + period - 1, &k));
	g_assert_cmpmem(&k, sizeof(k), &first, sizeof(first));
	for (i = 1; i <= TLS_TICKET_KEYS; i++) {
		g_assert_true(tls_ticket_newest(now + i * period, &k));
		g_assert_cmpuint(k.made_ns, ==, now + i * period);
		g_assert_cmpint(memcmp(k.name, first.name, sizeof(k.name)), !=, 0);
		g_assert_true(tls_ticket_find(k.name, &k, &old));
		g_assert_false(old);
		g_assert_cmpint(tls_ticket_find(first.name, &k, &old), ==, i < TLS_TICKET_KEYS);
		g_assert_true(i == TLS_TICKET_KEYS || old);
	}
	memset(k.name, 0, sizeof(k.name));
	g_assert_false(tls_ticket_find(k.name, &k, &old));
}

TEST("/tls/keys of tickets go to the next process")
{
	char text[TLS_TICKETS_TEXT], broken[TLS_TICKETS_TEXT + 2];
	struct tls_ticket_key first, k;
	uint64_t now = clock_mono_ns();
	unsigned i;
	bool old;

	g_assert_true(tls_ticket_newest(now, &first));
	g_assert_true(tls_tickets_save(text));
	g_assert_cmpuint(strlen(text), ==, sizeof(text) - 1);
	for (i = 1; i <= TLS_TICKET_KEYS; i++)
		g_assert_true(tls_ticket_newest(first.made_ns + i * TLS_TICKET_S * NS_PER_S, &k));
	g_assert_false(tls_ticket_find(first.name, &k, &old));
	for (i = 0; i < 4; i++) {
		strcpy(broken, text);
		if (i == 0)
			broken[0] = 'g';
		else if (i == 1)
			strcat(broken, "0");
		else if (i == 2)
			broken[sizeof(text) - 2] = '\0';
		g_assert_false(tls_tickets_load(broken, i == 3 ? first.made_ns - 1 : now));
	}
	g_assert_false(tls_ticket_find(first.name, &k, &old));
	g_assert_true(tls_tickets_load(text, first.made_ns));
	g_assert_true(tls_ticket_find(first.name, &k, &old));
	g_assert_false(old);
	g_assert_cmpmem(&k, sizeof(k), &first, sizeof(first));
}

/* A connection to a socket with these files, with a session of an earlier one or NULL.  Returns its
 * session. */
static SSL_SESSION *
session_of(struct io_secure *with, SSL_SESSION *earlier, bool *resumed)
{
	struct io_secure *own = secure;
	SSL_SESSION *session;
	struct io_sock s;
	struct peer p;
	int fd;

	secure = with;
	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_3_VERSION);
	if (earlier != NULL)
		SSL_set_session(p.ssl, earlier);
	g_assert_true(shake_hands(&s, &p));
	give(&s, &p, (char[]){ "GET" }, 3); /* and the tickets */
	*resumed = SSL_session_reused(p.ssl) == 1;
	session = SSL_get1_session(p.ssl);
	/* else OpenSSL takes the session for a broken one */
	SSL_set_shutdown(p.ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	sock_close(&s);
	peer_free(&p);
	secure = own;
	return (session);
}

TLS_TEST("/tls/a session is resumed after a reload, but not with another certificate")
{
	struct pem pem, pem2;
	struct tls_fault fault;
	struct io_secure *a, *b, *other;
	SSL_SESSION *first, *second;
	bool resumed;

	pem_make(&pem);
	pem_make(&pem2);
	a = secure_new(of(pem.chain), of(pem.key), NULL, 0, &fault);
	b = secure_new(of(pem.chain), of(pem.key), NULL, 0, &fault);
	other = secure_new(of(pem2.chain), of(pem2.key), NULL, 0, &fault);
	first = session_of(a, NULL, &resumed);
	g_assert_false(resumed);
	tls_secure_free(a);
	second = session_of(b, first, &resumed);
	g_assert_true(resumed);
	SSL_SESSION_free(first);
	first = session_of(other, second, &resumed);
	g_assert_false(resumed);
	SSL_SESSION_free(first);
	SSL_SESSION_free(second);
	g_assert_cmpuint(io->counters->tls_resumed, ==, 1);
	tls_secure_free(b);
	tls_secure_free(other);
}

/* A session of `from` is resumed at a socket with these settings and the same certificate. */
static bool
resumes_at(struct io_secure *from, const struct tls_settings *set)
{
	SSL_SESSION *first, *second;
	struct tls_fault fault;
	struct io_secure *to = tls_secure_new(set, &fault);
	bool resumed;

	g_assert_nonnull(to);
	first = session_of(from, NULL, &resumed);
	g_assert_false(resumed);
	second = session_of(to, first, &resumed);
	SSL_SESSION_free(first);
	SSL_SESSION_free(second);
	tls_secure_free(to);
	return (resumed);
}

TLS_TEST("/tls/a session is not resumed with other settings")
{
	struct tls_command weak = { "MinProtocol", "TLSv1.2" }, asks = { "VerifyMode", "Request" };
	struct tls_settings set, base;
	struct io_secure *from;
	struct tls_fault fault;
	struct pem pem;

	pem_make(&pem);
	base = (struct tls_settings){ .chain = of(pem.chain), .key = of(pem.key) };
	from = tls_secure_new(&base, &fault);
	g_assert_true(resumes_at(from, &base));
	set = base;
	set.ciphers = "ECDHE+AESGCM";
	g_assert_false(resumes_at(from, &set));
	set = base;
	set.groups = "P-256";
	g_assert_false(resumes_at(from, &set));
	set = base;
	set.clients_order = true;
	g_assert_false(resumes_at(from, &set));
	set = base;
	set.commands = &weak;
	set.ncommands = 1;
	g_assert_false(resumes_at(from, &set));
	tls_secure_free(from);
	from = tls_secure_new(&set, &fault);
	g_assert_true(resumes_at(from, &set));
	weak.value = "TLSv1.3";
	g_assert_false(resumes_at(from, &set));
	set.commands = &asks;
	tls_secure_free(from);
	from = tls_secure_new(&set, &fault);
	g_assert_false(resumes_at(from, &set)); /* who knows which authorities */
	tls_secure_free(from);
}

/* ---- what is known of a client */

static void
knows(const struct io_sock *s, const char *name, const char *value)
{
	struct text t = tls_fact(io_sock_facts(s), of(name));

	if (value == NULL)
		g_assert_null(t.p);
	else
		g_assert_cmpmem(t.p, t.n, value, strlen(value));
}

TLS_TEST("/tls/the facts of a connection")
{
	static const struct {
		int version;
		const char *host, *sni, *protocol, *cipher;
	} cases[] = { { TLS1_3_VERSION, "Www.Example", "www.example", "TLSv1.3",
			  "TLS_AES_128_GCM_SHA256" },
		{ TLS1_2_VERSION, NULL, NULL, "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256" } };
	struct io_sock s;
	struct peer p;
	size_t i;
	int fd;

	for (i = 0; i < NELEM(cases); i++) {
		unix_pair(&s, &fd, 0);
		peer_name = cases[i].host;
		peer_init(&p, fd, cases[i].version);
		peer_name = NULL;
		knows(&s, "SSL_PROTOCOL", NULL);
		g_assert_true(shake_hands(&s, &p));
		knows(&s, "SSL_PROTOCOL", cases[i].protocol);
		knows(&s, "SSL_CIPHER", cases[i].cipher);
		knows(&s, "SSL_CIPHER_USEKEYSIZE", "128");
		knows(&s, "SSL_CIPHER_ALGKEYSIZE", "128");
		knows(&s, "SSL_SESSION_RESUMED", "Initial");
		knows(&s, "SSL_TLS_SNI", cases[i].sni);
		knows(&s, "SSL", NULL);
		g_assert_cmpuint(io_sock_facts(&s)->told, ==, 4);
		g_assert_cmpuint(malloc_usable_size((void *)(uintptr_t)io_sock_facts(&s)), <, 500);
		sock_close(&s);
		peer_free(&p);
	}
}

/* ---- certificates of clients */

static struct tls_verifier *
verifier_new(const struct pem *authority, bool enforce)
{
	struct tls_verifier_settings set = { .depth = 9, .enforce = enforce, .exports = true };
	enum tls_verifier_file of;
	struct tls_verifier *v;
	const char *why;

	set.pem[VERIFIER_AUTHORITIES] = text_of(authority->chain);
	v = tls_verifier_new(&set, &of, &why);
	g_assert_nonnull(v);
	return (v);
}

static void
peer_shows(struct peer *p, const struct pem *pem)
{
	BIO *chain = BIO_new_mem_buf(pem->chain, -1), *key = BIO_new_mem_buf(pem->key, -1);
	X509 *x = PEM_read_bio_X509(chain, NULL, NULL, NULL);
	EVP_PKEY *k = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);

	g_assert_cmpint(SSL_use_certificate(p->ssl, x), ==, 1);
	g_assert_cmpint(SSL_use_PrivateKey(p->ssl, k), ==, 1);
	X509_free(x);
	EVP_PKEY_free(k);
	BIO_free(chain);
	BIO_free(key);
}

TLS_TEST("/tls/certificates of clients")
{
	struct pem known, unknown;
	const struct {
		const struct pem *shows;
		bool enforce;
		const char *verify, *cn; /* verify NULL: no handshake */
	} cases[] = { { &known, true, "SUCCESS", "x" }, { &known, false, "SUCCESS", "x" },
		{ NULL, false, "NONE", NULL }, { NULL, true, NULL, NULL },
		{ &unknown, false, "FAILED:self-signed certificate", NULL },
		{ &unknown, true, NULL, NULL } };
	struct tls_verifier *v, *same, *other;
	struct io_sock s;
	struct peer p;
	size_t i;
	int fd;

	pem_make(&known);
	pem_make(&unknown);
	for (i = 0; i < NELEM(cases); i++) {
		v = verifier_new(&known, cases[i].enforce);
		same = verifier_new(&known, cases[i].enforce);
		other = verifier_new(&known, !cases[i].enforce);
		unix_pair(&s, &fd, 0);
		peer_init(&p, fd, TLS1_3_VERSION);
		if (cases[i].shows != NULL)
			peer_shows(&p, cases[i].shows);
		shake_verifier = v;
		(void)shake_hands(&s, &p);
		shake_verifier = NULL;
		tls_verifier_put(v); /* the connection has its own hold */
		g_assert_cmpint(shake.res, ==, cases[i].verify != NULL ? 0 : -EPROTO);
		if (cases[i].verify != NULL) {
			knows(&s, "SSL_CLIENT_VERIFY", cases[i].verify);
			knows(&s, "SSL_CLIENT_S_DN_CN", cases[i].cn);
			knows(&s, "SSL_CLIENT_M_SERIAL", cases[i].cn != NULL ? "01" : NULL);
			knows(&s, "SSL_CLIENT_CERT", cases[i].cn != NULL ? known.chain : NULL);
			g_assert_true(tls_verified_by(io_sock_facts(&s), same));
			g_assert_false(tls_verified_by(io_sock_facts(&s), other));
		}
		sock_close(&s);
		peer_free(&p);
		tls_verifier_put(same);
		tls_verifier_put(other);
	}
}

/* The result of a handshake in which the client shows its certificate n + 1 times. */
static int64_t
shows_many(const struct pem *pem, unsigned n, int version)
{
	BIO *b = BIO_new_mem_buf(pem->chain, -1);
	X509 *x = PEM_read_bio_X509(b, NULL, NULL, NULL);
	struct io_sock s;
	struct peer p;
	int fd;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, version);
	peer_shows(&p, pem);
	while (n-- > 0)
		g_assert_cmpint(SSL_add1_chain_cert(p.ssl, x), ==, 1);
	(void)shake_hands(&s, &p);
	sock_close(&s);
	peer_free(&p);
	X509_free(x);
	BIO_free(b);
	return (shake.res);
}

/* A certificate has 0.3 kB.  With a step in the middle of a record, one of four of the longest
 * waited for its deadline. */
TLS_TEST("/tls/certificates of clients are few")
{
	const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	struct pem known;
	unsigned i;

	pem_make(&known);
	shake_verifier = verifier_new(&known, false);
	for (i = 0; i < 40; i++) {
		g_assert_cmpint(shows_many(&known, 80, versions[i % 2]), ==, -EPROTO);
		g_assert_cmpstr(shake.op.handshake.why, ==, "excessive message size");
	}
	for (i = 0; i < 2; i++)
		g_assert_cmpint(shows_many(&known, 45, versions[i]), ==, 0);
	tls_verifier_put(shake_verifier);
	shake_verifier = NULL;
}

/* ---- hellos and flights */

TLS_TEST("/tls/a hello names its host, in any records")
{
	char bytes[4096], split[7 * 4096], buf[TLS_NAME_MAX + 1];
	size_t n, i, at = 0;
	struct text name;

	peer_name = "Www.Example";
	n = hello(bytes, sizeof(bytes));
	peer_name = NULL;
	name = tls_hello_name(bytes, n, buf);
	g_assert_cmpmem(name.p, name.n, "www.example", 11);
	for (i = TLS_HEAD; i < n; i++, at += 6) {
		memcpy(split + at, "\x16\x03\x01\x00\x01", 5);
		split[at + 5] = bytes[i];
	}
	name = tls_hello_name(split, at, buf);
	g_assert_cmpmem(name.p, name.n, "www.example", 11);
	for (i = 0; i < n; i++) { /* the length of a record says more than there is */
		name = tls_hello_name(bytes, i, buf);
		g_assert_cmpuint(name.n, ==, 0);
	}
	n = hello(bytes, sizeof(bytes));
	g_assert_cmpuint(tls_hello_name(bytes, n, buf).n, ==, 0); /* it names none */
}

static size_t whole;

static enum tls_flight
later(const char *p, size_t n)
{
	return (tls_flight(p, n, false, &whole));
}

TLS_TEST("/tls/a head tells that a record is unknown, or too long")
{
	char two[11] = "\x14\x03\x03\x00\x01\x01";

	g_assert_cmpint(later("\x17\x03\x03\x41\x00", 5), ==, TLS_FLIGHT_MORE);
	g_assert_cmpint(later("\x17\x03\x03\x41\x01", 5), ==, TLS_FLIGHT_BROKEN);
	g_assert_cmpint(later("\x16\x03\x03\x40\x00", 5), ==, TLS_FLIGHT_MORE);
	g_assert_cmpint(later("\x16\x03\x03\x40\x01", 5), ==, TLS_FLIGHT_BROKEN);
	g_assert_cmpint(later("\x13\x03\x03\x00\x10", 5), ==, TLS_FLIGHT_BROKEN);
	g_assert_cmpint(later("\x18\x03\x03\x00\x10", 5), ==, TLS_FLIGHT_BROKEN);
	g_assert_cmpint(later("\x17\x02\x03\x00\x10", 5), ==, TLS_FLIGHT_BROKEN);
	g_assert_cmpuint(whole, ==, TLS_HEAD);
	memcpy(two + 6, "GET /", 5); /* what is right comes first */
	g_assert_cmpint(later(two, 10), ==, TLS_FLIGHT_PART);
	g_assert_cmpint(later(two, 11), ==, TLS_FLIGHT_READY);
	g_assert_cmpuint(whole, ==, 6);
}

static enum tls_flight
first(const char *p, size_t n)
{
	return (tls_flight(p, n, true, &whole));
}

TLS_TEST("/tls/a flight is whole at its last byte")
{
	char bytes[4096], split[7 * 4096];
	size_t n = hello(bytes, sizeof(bytes)), i, at = 0;

	for (i = 0; i < n; i++)
		g_assert_cmpint(first(bytes, i), ==, TLS_FLIGHT_MORE);
	g_assert_cmpint(first(bytes, n), ==, TLS_FLIGHT_READY);
	for (i = TLS_HEAD; i < n; i++, at += 6) { /* a record for each byte */
		memcpy(split + at, "\x16\x03\x01\x00\x01", 5);
		split[at + 5] = bytes[i];
	}
	for (i = 0; i < at; i++)
		g_assert_cmpint(first(split, i), ==, TLS_FLIGHT_MORE);
	g_assert_cmpint(first(split, at), ==, TLS_FLIGHT_READY);
	for (i = 1; i < n; i++)
		g_assert_cmpint(tls_flight(bytes, i, false, &whole), ==, TLS_FLIGHT_MORE);
	g_assert_cmpint(tls_flight(bytes, n, false, &whole), ==, TLS_FLIGHT_READY);
	g_assert_cmpint(tls_flight("", 0, false, &whole), ==, TLS_FLIGHT_MORE);
	for (i = 1; i < n; i++) { /* and a part of the next record */
		memcpy(split, bytes, n);
		memcpy(split + n, bytes, i);
		g_assert_cmpint(first(split, n + i), ==, TLS_FLIGHT_READY);
		g_assert_cmpuint(whole, ==, n);
		g_assert_cmpint(tls_flight(split, n + i, false, &whole), ==, TLS_FLIGHT_PART);
		g_assert_cmpuint(whole, ==, n);
	}
	g_assert_cmpint(first("\x16\x03\x01\x00\x05\x01\x00\x00\x00", 9), ==, TLS_FLIGHT_MORE);
	g_assert_cmpint(first("\x16\x03\x01\x40\x00\x01", 6), ==, TLS_FLIGHT_MORE);
	g_assert_cmpint(first("\x16\x03\x01\x40\x01\x01", 6), ==, TLS_FLIGHT_BROKEN);
	g_assert_cmpint(first("\x16\x03\x01\x00\x00", 5), ==, TLS_FLIGHT_NOT_TLS);
	g_assert_cmpint(first("\x16\x03\x01\x00\x01\x02", 6), ==, TLS_FLIGHT_NOT_TLS);
	g_assert_cmpint(first("\x80\x2e", 2), ==, TLS_FLIGHT_NOT_TLS); /* SSL 2 */
}
