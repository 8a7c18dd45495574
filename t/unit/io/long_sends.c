/* t/unit/io/long_sends.c -- a short request does not wait behind the long sends of others. */
#include <sys/socket.h>
#include "io/file.h"
#include "t/unit/io/io_test.h"

#define SENDERS 64
#define LENGTH  (160u << 10) /* fits into the buffer of a unix socket */

struct long_send {
	struct io_sock sock;
	struct waiter w;
	struct iovec iov;
	int peer;
};

static char bytes[LENGTH];
static struct long_send senders[SENDERS];

static void
senders_open(void)
{
	struct long_send *l;

	for (l = senders; l < senders + SENDERS; l++) {
		unix_pair(&l->sock, &l->peer, 2 * LENGTH);
		l->sock.hints |= SOCK_WRITABLE;
		wait_init(&l->w, IO_SEND, &l->sock);
		l->iov = (struct iovec){ .iov_base = bytes, .iov_len = LENGTH };
		l->w.op.send.iov = &l->iov;
		l->w.op.send.n = 1;
	}
}

static void
senders_close(void)
{
	struct long_send *l;

	for (l = senders; l < senders + SENDERS; l++) {
		sock_close(&l->sock);
		close(l->peer);
	}
}

static unsigned
senders_done(void)
{
	unsigned i, n = 0;

	for (i = 0; i < SENDERS; i++)
		n += senders[i].w.done;
	return (n);
}

static void
all_submit(void)
{
	unsigned i;

	for (i = 0; i < SENDERS; i++)
		wait_submit(&senders[i].w);
}

/* What arrives after the long sends were asked for is received while most of them wait, and each of
 * them gets its turn. */
LOOP_TEST("/long-sends/short-first", file_backends[0], 1, 8)
{
	struct io_sock s;
	struct waiter w;
	unsigned i;
	int peer;

	senders_open();
	unix_pair(&s, &peer, 2 * LENGTH);
	wait_init(&w, IO_RECV, &s);
	wait_submit(&w);
	while ((s.hints & SOCK_REGISTERED) == 0)
		io_run(io);
	all_submit();
	g_assert_cmpint(write(peer, "x", 1), ==, 1);
	io_run(io);
	g_assert_true(w.done);
	g_assert_cmpuint(senders_done(), <, SENDERS / 2);
	for (i = 0; i < SENDERS && senders_done() < SENDERS; i++)
		io_run(io);
	for (i = 0; i < SENDERS; i++)
		g_assert_cmpint(senders[i].w.res, >, 0);
	close(peer);
	sock_close(&s);
	senders_close();
}

/* One that waits for its turn can be cancelled as any other. */
LOOP_TEST("/long-sends/cancel", file_backends[0], 1, 8)
{
	struct long_send *last = &senders[SENDERS - 1];
	unsigned i;
	char c;

	senders_open();
	all_submit();
	op_cancel(io, &last->w.op);
	g_assert_cmpint(wait_for(&last->w), ==, -ECANCELED);
	g_assert_cmpint(recv(last->peer, &c, 1, MSG_DONTWAIT), ==, -1);
	for (i = 0; i < SENDERS - 1; i++)
		g_assert_cmpint(wait_for(&senders[i].w), ==, LENGTH);
	senders_close();
}
