/* t/unit/io/tls_no_memory.c -- each allocation of OpenSSL for a connection fails in turn: the
 * connection works or ends, the next one works, and nothing leaks. */
#include <stdatomic.h>
#include <openssl/crypto.h>
#include "t/unit/io/tls_test.h"

static atomic_uint left;                  /* allocations until the one that fails; 0: none fails */
static _Thread_local bool is_ours = true; /* not the client, which has the same library */

static bool
fails(void)
{
	unsigned n = atomic_load(&left);

	while (is_ours && n > 0)
		if (atomic_compare_exchange_weak(&left, &n, n - 1))
			return (n == 1);
	return (false);
}

static void *
any_malloc(size_t n, const char *file, int line)
{
	return (fails() ? NULL : malloc(n));
}

static void *
any_realloc(void *p, size_t n, const char *file, int line)
{
	return (fails() ? NULL : realloc(p, n));
}

static void
any_free(void *p, const char *file, int line)
{
	free(p);
}

/* Before the first allocation of OpenSSL. */
static void __attribute__((constructor)) take_memory(void)
{
	must(CRYPTO_set_mem_functions(any_malloc, any_realloc, any_free) == 1);
	is_ours = false;
}

/* Goes on until the op of ours has ended, whatever the client does meanwhile. */
static void
until(struct waiter *w, struct peer *p)
{
	char buf[2000];
	size_t k;

	while (!w->done) {
		if (SSL_is_init_finished(p->ssl))
			(void)SSL_read_ex(p->ssl, buf, sizeof(buf), &k);
		else
			(void)SSL_do_handshake(p->ssl);
		is_ours = true;
		go_round();
		is_ours = false;
	}
}

/* True: the connection works. */
static bool
connection(void)
{
	static char bytes[1000];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct io_sock s;
	struct waiter w;
	struct peer p;
	size_t k;
	int fd;
	bool ok;

	unix_pair(&s, &fd, 0);
	peer_init(&p, fd, TLS1_3_VERSION);
	shake_begin(&s, LATE_MS);
	until(&shake, &p);
	/* the client has refused nothing */
	g_assert_true(shake.res != -EPROTO || shake.op.handshake.fault != SHAKE_ALERT);
	ok = shake.res == 0 && SSL_do_handshake(p.ssl) == 1;
	if (ok && SSL_write_ex(p.ssl, bytes, sizeof(bytes), &k) == 1) {
		wait_init(&w, IO_RECV, &s);
		w.op.deadline_ms = LATE_MS;
		wait_submit(&w);
		until(&w, &p);
		ok = w.res == sizeof(bytes);
	}
	if (ok) {
		wait_init(&w, IO_SEND, &s);
		w.op.send.iov = &iov;
		w.op.send.n = 1;
		wait_submit(&w);
		until(&w, &p);
		ok = w.res == sizeof(bytes);
	}
	is_ours = true;
	sock_close(&s);
	is_ours = false;
	peer_free(&p);
	ERR_clear_error();
	return (ok);
}

TLS_TEST("/tls-no-memory/each allocation of a connection fails in turn")
{
	unsigned n, failed = 0;
	bool all_done = false;

	g_assert_true(connection()); /* tables that live as long as the process */
	for (n = 1; !all_done; n++) {
		atomic_store(&left, n);
		failed += !connection();
		all_done = atomic_exchange(&left, 0) != 0;
		g_assert_true(n % 16 != 0 || connection());
	}
	g_test_message("%u allocations, %u were needed", n, failed);
	g_assert_cmpuint(n, >, 100);
	g_assert_cmpuint(failed, >, 50);
	g_assert_true(connection());
}
