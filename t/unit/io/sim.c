/* t/unit/io/sim.c -- the loop of the tests keeps the contract. */
#include <errno.h>
#include "io/engine.h"
#include "io/loop/sim.h"
#include "io/sender.h"
#include "t/unit/test.h"

static struct io *io;
static int calls;
static int64_t last;
static char *kept;

static void
note(struct io_op *op)
{
	calls++;
	last = op->res;
}

static void
keep(struct io_op *op)
{
	note(op);
	kept = io_keep(op);
}

static void
up(void)
{
	io = sim_new();
	calls = 0;
	last = 0;
}

TEST("/sim/recv")
{
	struct io_sock s;
	struct io_op op;

	up();
	io_sock_init(&s, 7);
	op_init(&op, IO_RECV, keep);
	op.sock = &s;
	op_submit(io, &op);
	g_assert_true(io_busy(io));
	sim_run(io);
	g_assert_cmpint(calls, ==, 0);
	sim_recv(io, sim_find(io, IO_RECV, &s), TEXT("hello"));
	g_assert_cmpint(calls, ==, 0);
	sim_run(io);
	g_assert_cmpint(calls, ==, 1);
	g_assert_cmpmem(kept, (size_t)last, "hello", 5);
	io_give_back(io, kept);
	op.done = note; /* again, ended by its deadline: nothing is lent twice */
	op.deadline_ms = 50;
	op_submit(io, &op);
	sim_advance_ms(io, 49);
	g_assert_cmpint(calls, ==, 1);
	sim_advance_ms(io, 1);
	g_assert_cmpint(calls, ==, 2);
	g_assert_cmpint(last, ==, -ETIMEDOUT);
	g_assert_false(io_busy(io));
	io_free(io);
}

TEST("/sim/send-record")
{
	struct iovec iov[2] = { { (char *)"abc", 3 }, { (char *)"defg", 4 } };
	struct io_sock s;
	struct io_op op;

	up();
	io_sock_init(&s, 7);
	op_init(&op, IO_SEND, note);
	op.sock = &s;
	op.send.iov = iov;
	op.send.n = 2;
	op_submit(io, &op);
	g_assert_cmpuint(sim_send(io, sim_nth(io, 0), 5), ==, 5);
	sim_run(io);
	g_assert_cmpint(last, ==, 5);
	g_assert_cmpmem(sim_sent(io, &s).p, sim_sent(io, &s).n, "abcde", 5);
	sim_sent_clear(io, &s);
	g_assert_cmpuint(sim_sent(io, &s).n, ==, 0);
	io_free(io);
}

TEST("/sim/connect-close-cancel")
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct io_sock s;
	struct io_op op, timer;
	int fd;

	up();
	io_sock_init(&s, -1);
	op_init(&op, IO_CONNECT, note);
	op.sock = &s;
	op.connect.addr = (struct sockaddr *)&in;
	op.connect.len = sizeof(in);
	op_submit(io, &op);
	fd = s.fd;
	g_assert_cmpint(fd, >, 0);
	op_cancel(io, &op);
	g_assert_cmpint(calls, ==, 0);
	sim_run(io);
	g_assert_cmpint(last, ==, -ECANCELED);
	g_assert_true(io_sock_alive(&s));
	sim_hang_up(&s);
	g_assert_false(io_sock_alive(&s));
	op_init(&op, IO_CLOSE, note);
	op.sock = &s;
	op_submit(io, &op);
	g_assert_cmpint(s.fd, ==, -1);
	g_assert_cmpuint(sim_closed(io, fd), ==, 1);
	sim_finish(io, sim_find(io, IO_CLOSE, NULL), 0);
	op_init(&timer, IO_TIMER, note);
	timer.deadline_ms = 10;
	op_submit(io, &timer);
	sim_advance_ms(io, 10);
	g_assert_cmpint(calls, ==, 3);
	g_assert_cmpint(last, ==, -ETIMEDOUT);
	io_free(io);
}

TEST("/sim/open-and-file")
{
	struct statx stx;
	struct io_file *f;
	struct io_op op;

	up();
	op_init(&op, IO_OPEN, note);
	op.open.path = "x";
	op.open.stx = &stx;
	op_submit(io, &op);
	sim_open(io, &op, 55, 1234, 99, 0644);
	sim_run(io);
	g_assert_cmpint(last, ==, 55);
	g_assert_cmpuint(stx.stx_size, ==, 1234);
	g_assert_true(S_ISREG(stx.stx_mode));
	f = io_file_new(io, 55, 1234);
	io_file_put(io_file_ref(f));
	g_assert_cmpuint(sim_closed(io, 55), ==, 0);
	io_file_put(f);
	g_assert_cmpuint(sim_closed(io, 55), ==, 1);
	io_free(io);
}

/* ---------------------------------------------------------------- the sender, event by event */

static struct sender snd;
static struct body body;
static struct io_sock sock;
static int ended, end_res;

static void
sender_ended(struct sender *s, int res)
{
	ended++;
	end_res = res;
}

static struct io_file *
start(bool reading, uint64_t file_len)
{
	struct io_file *f;

	io = reading ? sim_new_reading() : sim_new();
	ended = 0;
	io_sock_init(&sock, 9);
	body_init(&body, io);
	f = io_file_new(io, 60, file_len);
	g_assert_true(body_copy(&body, TEXT("head:")));
	g_assert_true(body_file(&body, f, 10, file_len - 10));
	g_assert_true(body_copy(&body, TEXT(":tail")));
	io_file_put(f);
	sender_init(&snd, io, &sock);
	sender_start(&snd, &body, 1000, sender_ended);
	return (f);
}

static void
stop(int res)
{
	g_assert_cmpint(ended, ==, 1);
	g_assert_cmpint(end_res, ==, res);
	g_assert_false(io_busy(io));
	body_clear(&body);
	g_assert_cmpuint(sim_closed(io, 60), ==, 1);
	io_free(io);
}

TEST("/sender/short-counts")
{
	uint64_t off = 10, len = 30;
	struct io_op *op;

	start(false, 40);
	op = sim_find(io, IO_SEND, &sock);
	g_assert_true(op->more);
	while ((op = sim_find(io, IO_SEND, &sock)) != NULL) {
		sim_send(io, op, 1);
		sim_run(io);
	}
	while ((op = sim_find(io, IO_SEND_FILE, &sock)) != NULL) {
		g_assert_cmpuint(op->file.off, ==, off);
		g_assert_cmpuint(op->file.len, ==, len);
		sim_finish(io, op, 3);
		off += 3;
		len -= 3;
		sim_run(io);
	}
	g_assert_cmpuint(len, ==, 0);
	op = sim_find(io, IO_SEND, &sock);
	g_assert_false(op->more);
	sim_send(io, op, 100);
	sim_run(io);
	g_assert_cmpmem(sim_sent(io, &sock).p, sim_sent(io, &sock).n, "head::tail", 10);
	g_assert_cmpuint(snd.sent, ==, 40);
	stop(0);
}

TEST("/sender/file-shrinks")
{
	start(false, 40);
	sim_send(io, sim_nth(io, 0), 100);
	sim_run(io);
	sim_finish(io, sim_nth(io, 0), 0);
	sim_run(io);
	stop(-ENODATA);
}

TEST("/sender/progress-moves-deadline")
{
	start(false, 40);
	sim_advance_ms(io, 900);
	sim_send(io, sim_nth(io, 0), 2);
	sim_run(io);
	sim_advance_ms(io, 900);
	g_assert_cmpint(ended, ==, 0);
	sim_advance_ms(io, 101);
	stop(-ETIMEDOUT);
}

TEST("/sender/reads-ahead")
{
	static char big[IO_WINDOW];
	struct io_op *op;

	start(true, 10 + 2 * IO_WINDOW);
	g_assert_cmpuint(sim_count(io, IO_READ), ==, 1); /* while the head is being sent */
	sim_send(io, sim_find(io, IO_SEND, &sock), 100);
	sim_run(io);
	op = sim_find(io, IO_READ, NULL);
	g_assert_cmpuint(op->file.off, ==, 10);
	g_assert_cmpuint(op->file.len, ==, IO_WINDOW);
	sim_read(io, op, (struct text){ big, sizeof(big) });
	sim_run(io);
	op = sim_find(io, IO_READ, NULL); /* the next one, while this one is sent */
	g_assert_cmpuint(op->file.off, ==, 10 + IO_WINDOW);
	op = sim_find(io, IO_SEND, &sock);
	g_assert_false(op->more); /* nothing else is at hand */
	sim_send(io, op, 1000);
	sim_run(io);
	sim_read(io, sim_find(io, IO_READ, NULL), (struct text){ big, 77 }); /* a short one */
	sim_run(io);
	sim_send(io, sim_find(io, IO_SEND, &sock), IO_WINDOW);
	sim_run(io);
	op = sim_find(io, IO_READ, NULL);
	g_assert_cmpuint(op->file.off, ==, 10 + IO_WINDOW + 77);
	sim_finish(io, op, -EIO); /* ahead of its time: asked again when its turn comes */
	sim_send(io, sim_find(io, IO_SEND, &sock), IO_WINDOW);
	sim_run(io);
	op = sim_find(io, IO_READ, NULL);
	g_assert_cmpuint(op->file.off, ==, 10 + IO_WINDOW + 77);
	sim_finish(io, op, -EIO);
	sim_run(io);
	stop(-EIO);
}

/* Cancel at every moment: exactly one done(), nothing left in flight. */
static void
cancel_after(bool reading, int steps)
{
	static char big[IO_WINDOW];
	struct io_op *op;
	int i;

	start(reading, 10 + 3 * IO_WINDOW);
	for (i = 0; i < steps && ended == 0; i++) {
		op = sim_nth(io, (unsigned)i % 2);
		op = op != NULL ? op : sim_nth(io, 0);
		if (op == NULL)
			sim_run(io);
		else if (op->kind == IO_READ)
			sim_read(io, op, (struct text){ big, op->file.len });
		else if (op->kind == IO_SEND)
			sim_send(io, op, 100000);
		else
			sim_finish(io, op, op->file.len / 2 + 1);
		if (i % 3 != 0)
			sim_run(io);
	}
	sender_cancel(&snd);
	sender_cancel(&snd);
	sim_run(io);
	stop(ended != 0 && end_res == 0 ? 0 : -ECANCELED);
}

TEST("/sender/cancel")
{
	int i;

	for (i = 0; i < 40; i++) {
		cancel_after(false, i);
		cancel_after(true, i);
	}
}

TEST("/sender/empty")
{
	io = sim_new();
	ended = 0;
	io_sock_init(&sock, 9);
	body_init(&body, io);
	sender_init(&snd, io, &sock);
	sender_start(&snd, &body, 1000, sender_ended);
	g_assert_cmpint(ended, ==, 0);
	sim_run(io);
	g_assert_cmpint(ended, ==, 1);
	g_assert_cmpint(end_res, ==, 0);
	io_free(io);
}
