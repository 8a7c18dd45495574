/* t/unit/io/stuck_disk.c -- gthread-sendfile and posix-aio while the disk hangs. */
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include "t/unit/io/in_dir.h"

extern const struct file_backend file_gthread_sendfile, file_posix_aio;

#define SIZE 300001u

static bool sendfile_waits;

/* The disk hangs in the middle of the call. */
ssize_t
sendfile(int out, int in, off_t *off, size_t len)
{
	if (__atomic_load_n(&sendfile_waits, __ATOMIC_ACQUIRE))
		gate_wait();
	return (syscall(SYS_sendfile, out, in, off, len));
}

static void
hold_thread(void)
{
	pthread_mutex_lock(&gate.lock);
	while (gate.inside == 0)
		pthread_cond_wait(&gate.cond, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static void
release_thread(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.open = true;
	pthread_cond_broadcast(&gate.cond);
	pthread_mutex_unlock(&gate.lock);
}

/* The deadline comes while a disk holds the sender; the connection is closed, and its number given
 * to another one: nothing of the file reaches anybody, and no event of the old socket touches the
 * memory where it was. */
TEST("/gthread-sendfile/stuck-sender")
{
	char *path = file_make(dir, "stuck", 1 << 20), byte;
	struct io_sock *old = g_new(struct io_sock, 1), s;
	int peer, other, number, fds = fd_count();
	struct io_file *f;
	struct waiter w, r;

	loop_up(&file_gthread_sendfile, 1, 64);
	f = file_open(path, 1 << 20);
	unix_pair(old, &peer, 1 << 20);
	number = old->fd;
	wait_init(&r, IO_RECV, old); /* has it registered */
	wait_submit(&r);
	run_ms(1);
	op_cancel(io, &r.op);
	g_assert_cmpint(wait_for(&r), ==, -ECANCELED);

	gate.open = false;
	__atomic_store_n(&sendfile_waits, true, __ATOMIC_RELEASE);
	wait_init(&w, IO_SEND_FILE, old);
	w.op.file.file = f;
	w.op.file.len = 1 << 20;
	w.op.deadline_ms = 50;
	wait_submit(&w);
	hold_thread();
	g_assert_cmpint(wait_for(&w), ==, -ETIMEDOUT);
	sock_close(old);
	memset(old, 0x55, sizeof(*old));
	/* it sees the end at once, not when the disk answers */
	g_assert_cmpint(read(peer, &byte, 1), ==, 0);
	close(peer);
	run_ms(10); /* the events of that */
	g_assert_cmpint(old->hints, ==, 0x55);
	g_free(old);

	unix_pair(&s, &other, 1 << 20);
	g_assert_cmpint(s.fd, <=, number);
	__atomic_store_n(&sendfile_waits, false, __ATOMIC_RELEASE);
	release_thread();
	run_ms(50);
	g_assert_cmpint(f->refs, ==, 1); /* the thread is back */
	g_assert_cmpint(recv(other, &byte, 1, MSG_DONTWAIT), ==, -1);
	sock_close(&s);
	close(other);
	io_file_put(f);
	loop_down();
	g_assert_cmpint(fd_count(), ==, fds);
	g_free(path);
}

/* The queue of a disk is full: the duplicate that was made for the thread goes at once, not when
 * that disk answers. */
LOOP_TEST("/gthread-sendfile/refused-sender", &file_gthread_sendfile, 1, 1)
{
	char *path = file_make(dir, "refused", SIZE), byte;
	struct waiter w[2];
	struct io_sock s[2];
	struct io_file *f;
	int peer[2], i;

	f = file_open(path, SIZE);
	gate_enter_dev(LANE_STAT, io_file_dev(f)); /* the thread that closes files of that disk */
	gate_enter_dev(LANE_READ, io_file_dev(f));
	for (i = 0; i < 2; i++) { /* one waits, one is too many */
		unix_pair(&s[i], &peer[i], 1 << 20);
		wait_init(&w[i], IO_SEND_FILE, &s[i]);
		w[i].op.file.file = f;
		w[i].op.file.len = SIZE;
		wait_submit(&w[i]);
	}
	g_assert_cmpint(wait_for(&w[1]), ==, -EAGAIN);
	sock_close(&s[1]);
	g_assert_cmpint(recv(peer[1], &byte, 1, MSG_DONTWAIT), ==, 0);
	gate_leave();
	g_assert_cmpint(wait_for(&w[0]), >, 0);
	sock_close(&s[0]);
	close(peer[0]);
	close(peer[1]);
	io_file_put(f);
	g_free(path);
}

static void
fill(int fd)
{
	static const char zero[4096];

	while (send(fd, zero, sizeof(zero), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	g_assert_cmpint(errno, ==, EAGAIN);
}

/* A thread waits for disks only: while a client does not read, others get their files from the one
 * there is. */
TEST("/gthread-sendfile/slow-client")
{
	char *path = file_make(dir, "slow", SIZE), *bytes;
	struct io_sock s;
	struct waiter w;
	struct io_file *f;
	int peer;

	g_assert_true(g_file_get_contents(path, &bytes, NULL, NULL));
	loop_up(&file_gthread_sendfile, 1, 64);
	f = file_open(path, SIZE);
	unix_pair(&s, &peer, 1 << 20);
	wait_init(&w, IO_SEND_FILE, &s);
	w.op.file.file = f;
	fill(s.fd);
	w.op.file.len = SIZE;
	wait_submit(&w);
	send_range(f, bytes, 0, SIZE);
	g_assert_false(w.done);
	op_cancel(io, &w.op);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	sock_close(&s);
	close(peer);
	io_file_put(f);
	loop_down();
	g_free(bytes);
	g_free(path);
}

static void
read_init(struct waiter *w, struct io_file *f, uint64_t off, uint32_t deadline_ms)
{
	wait_init(w, IO_READ, NULL);
	w->op.file.file = f;
	w->op.file.off = off;
	w->op.file.len = 4000;
	w->op.deadline_ms = deadline_ms;
}

/* A pipe is read like a file that hangs.  A device may have one read under way: reads of other
 * pipes wait, in vain; a file of another device does not.  Then the pipe gets bytes. */
static void
posix_waits(void)
{
	g_autofree char *path = file_make(dir, "posix", 5000);
	struct waiter hung, w, file;
	struct io_file *f, *g, *h;
	int p[2], q[2];

	g_assert_cmpint(pipe2(p, O_CLOEXEC), ==, 0);
	g_assert_cmpint(pipe2(q, O_CLOEXEC), ==, 0);
	g_assert_cmpint(write(q[1], "ready", 5), ==, 5);
	f = io_file_new(io, p[0], 100);
	g = io_file_new(io, q[0], 100);
	h = file_open(path, 5000);
	read_init(&hung, f, 0, 50);
	wait_submit(&hung);
	read_init(&w, g, 0, 100);
	wait_submit(&w);
	read_init(&file, h, 4000, 0);
	g_assert_cmpint(wait_op(&file), ==, 1000); /* to the end of the file */
	g_assert_cmpint(wait_for(&w), ==, -ETIMEDOUT);
	g_assert_cmpint(wait_for(&hung), ==, -ETIMEDOUT);
	g_assert_cmpuint(f->refs, ==, 2); /* the library reads from it */
	g_assert_cmpuint(g->refs, ==, 1);
	g_assert_cmpint(write(p[1], "late", 4), ==, 4);
	g_assert_cmpint(wait_op(&w), ==, 5);
	g_assert_cmpuint(f->refs, ==, 1);
	g_assert_cmpuint(io->counters->posix_aio_async, ==, 3);
	g_assert_cmpuint(io->counters->posix_aio_sync, ==, 0);
	close(p[1]);
	close(q[1]);
	io_file_put(f);
	io_file_put(g);
	io_file_put(h);
}

LOOP_TEST("/posix-aio/waits", &file_posix_aio, 1, 64)
{
	if (io_backend(io) == &file_posix_aio)
		posix_waits();
	else
		g_test_skip(io_fallback_why(io));
}
