/* t/unit/io/io_test.h -- a real loop with its pools, one op at a time, a pool thread that blocks
 * until the test opens a gate, and a directory for files. */
#ifndef IO_TEST_H
#define IO_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "io/proof.h"
#include "io/disk/pools.h"
#include "io/engine.h"
#include "io/disk/job.h"
#include "t/unit/test.h"

static struct io *io;
static struct io_pools *pools;

static void
loop_up_with(const struct file_backend *backend, unsigned threads, unsigned per_device,
    unsigned max_queue)
{
	struct io_pools_conf pc = { .tells_awake = true,
		.stat_threads = threads,
		.read_threads = threads,
		.per_device = per_device,
		.max_queue = max_queue,
		.hotset_mib = 16 };
	struct io_conf conf = { .backend = backend,
		.stat_jobs = threads,
		.read_jobs = threads,
		.max_queue = max_queue };
	int err = 0;

	g_assert_cmpint(io_pools_new(&pc, &pools), ==, 0);
	conf.pools = pools;
	io = io_new(&conf, &err);
	g_assert_nonnull(io);
}

/* Each lane has exactly this many threads. */
static void G_GNUC_UNUSED
loop_up(const struct file_backend *backend, unsigned threads, unsigned max_queue)
{
	loop_up_with(backend, threads, threads, max_queue);
}

#define LOOP_TEST(path, ...) TEST_IN(path, loop_up(__VA_ARGS__), loop_down())

/* Each lane adds threads when several devices need some. */
static void G_GNUC_UNUSED
loop_up_sharing(const struct file_backend *backend, unsigned threads, unsigned max_queue)
{
	loop_up_with(backend, threads, 0, max_queue);
}

static void G_GNUC_UNUSED
loop_down(void)
{
	g_assert_false(io_busy(io));
	io_free(io);
	io_pools_free(pools, 5000);
}

struct waiter {
	struct io_op op;
	struct io_proof proof;
	bool done;
	int64_t res;
};

static void
waiter_done(struct io_op *op)
{
	struct waiter *w = (struct waiter *)op;

	g_assert_false(w->done);
	w->done = true;
	w->res = op->res;
}

static void G_GNUC_UNUSED
wait_init(struct waiter *w, enum io_kind kind, struct io_sock *s)
{
	memset(w, 0, sizeof(*w));
	op_init(&w->op, kind, waiter_done);
	w->op.sock = s;
	if (kind == IO_SEND_FILE)
		w->op.file.proof = &w->proof;
}

static void G_GNUC_UNUSED
wait_submit(struct waiter *w)
{
	w->done = false;
	op_submit(io, &w->op);
	g_assert_false(w->done);
}

static int64_t G_GNUC_UNUSED
wait_for(struct waiter *w)
{
	while (!w->done)
		io_run(io);
	return (w->res);
}

static int64_t G_GNUC_UNUSED
wait_op(struct waiter *w)
{
	wait_submit(w);
	return (wait_for(w));
}

/* The loop looks at this device, or leaves it to threads; else a busy machine would decide. */
static void G_GNUC_UNUSED
device_is_fit(uint64_t dev, bool fit)
{
	unsigned i = io_health_slot(dev);

	io->health.device[i].dev = dev;
	io->health.device[i].asked_ns = UINT64_MAX - ASK_NS;
	io->health.device[i].fit = fit;
}

static void G_GNUC_UNUSED
run_ms(unsigned ms)
{
	struct waiter t;

	wait_init(&t, IO_TIMER, NULL);
	t.op.deadline_ms = ms;
	g_assert_cmpint(wait_op(&t), ==, -ETIMEDOUT);
}

static void G_GNUC_UNUSED
sock_close(struct io_sock *s)
{
	struct waiter c;

	wait_init(&c, IO_CLOSE, s);
	g_assert_cmpint(wait_op(&c), ==, 0);
	g_assert_cmpint(s->fd, ==, -1);
}

/* ---------------------------------------------------------------- a thread that sleeps */

static struct gate {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool open;
	int inside, finished;
} gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, 0 };

static void
gate_wait(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.inside++;
	pthread_cond_broadcast(&gate.cond);
	while (!gate.open)
		pthread_cond_wait(&gate.cond, &gate.lock);
	gate.inside--;
	pthread_mutex_unlock(&gate.lock);
}

static void
gate_run(struct io_job *j)
{
	gate_wait();
	j->res = 1;
}

static void
gate_finish(struct io_job *j)
{
	gate.finished++; /* on the loop */
	io_job_free(j);
}

/* Occupies a thread of the lane until gate_open(). */
static void G_GNUC_UNUSED
gate_enter_dev(enum io_lane lane, uint64_t dev)
{
	struct io_job *j = io_job_new(io, NULL, NULL);
	int inside;

	pthread_mutex_lock(&gate.lock);
	gate.open = false;
	inside = gate.inside;
	pthread_mutex_unlock(&gate.lock);
	j->dev = dev;
	j->run = gate_run;
	j->finish = gate_finish;
	j->lane = lane;
	g_assert_cmpint(io_job_push(j), ==, 0);
	pthread_mutex_lock(&gate.lock);
	while (gate.inside <= inside)
		pthread_cond_wait(&gate.cond, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static void G_GNUC_UNUSED
gate_enter(enum io_lane lane)
{
	gate_enter_dev(lane, 0);
}

/* Returns how many were inside. */
static int G_GNUC_UNUSED
gate_open(void)
{
	int inside;

	pthread_mutex_lock(&gate.lock);
	inside = gate.inside;
	gate.open = true;
	pthread_cond_broadcast(&gate.cond);
	pthread_mutex_unlock(&gate.lock);
	return (inside);
}

static void G_GNUC_UNUSED
gate_leave(void)
{
	int want = gate.finished + gate_open();

	while (gate.finished < want)
		io_run(io);
}

/* ---------------------------------------------------------------- bytes and sockets */

static char G_GNUC_UNUSED
pattern(uint64_t i)
{
	return ((char)((i * 2654435761u) >> 13));
}

static int G_GNUC_UNUSED
fd_count(void)
{
	GDir *d = g_dir_open("/proc/self/fd", 0, NULL);
	int n = 0;

	while (g_dir_read_name(d) != NULL)
		n++;
	g_dir_close(d);
	return (n);
}

/* A pair of unix sockets.  Ours does not block, and has send_buffer bytes of room if that is not
 * 0. */
static void G_GNUC_UNUSED
unix_pair(struct io_sock *ours, int *peer, int send_buffer)
{
	int p[2];

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), ==, 0);
	g_assert_cmpint(fcntl(p[0], F_SETFL, O_NONBLOCK), ==, 0);
	if (send_buffer != 0)
		g_assert_cmpint(setsockopt(p[0], SOL_SOCKET, SO_SNDBUF, &send_buffer,
				    sizeof(send_buffer)),
		    ==, 0);
	io_sock_init(ours, p[0]);
	*peer = p[1];
}

/* ---------------------------------------------------------------- a directory of the test's own */

static char *dir G_GNUC_UNUSED;

/* Makes in/name of size bytes of pattern(). */
static G_GNUC_UNUSED char *
file_make(const char *in, const char *name, uint64_t size)
{
	char *path = g_build_filename(in, name, NULL), *bytes = g_malloc(size + 1);
	uint64_t i;

	for (i = 0; i < size; i++)
		bytes[i] = pattern(i);
	g_assert_true(g_file_set_contents(path, bytes, (gssize)size, NULL));
	g_free(bytes);
	return (path);
}

/* As if it had been read after it was written: the next read writes no access time. */
static G_GNUC_UNUSED void
file_was_read(const char *path)
{
	const struct timespec t[] = { { .tv_sec = time(NULL) + 60 }, { .tv_nsec = UTIME_OMIT } };

	g_assert_cmpint(utimensat(AT_FDCWD, path, t, 0), ==, 0);
}

static G_GNUC_UNUSED struct io_file *
file_open(const char *path, uint64_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct io_file *f;

	g_assert_cmpint(fd, >=, 0);
	f = io_file_new(io, fd, size);
	io_file_marked(f);
	return (f);
}

/* Reads n bytes from the peer and compares them. */
static void G_GNUC_UNUSED
check_received(int peer, const char *want, uint64_t n)
{
	g_autofree char *got = g_malloc(n);
	uint64_t have = 0;
	ssize_t k;

	while (have < n && (k = read(peer, got + have, n - have)) > 0)
		have += (uint64_t)k;
	g_assert_cmpuint(have, ==, n);
	g_assert_cmpint(memcmp(got, want, n), ==, 0);
}

/* Sends a range with as many ops as it needs, and compares what arrives. */
static void G_GNUC_UNUSED
send_range(struct io_file *f, const char *bytes, uint64_t off, uint32_t len)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	unix_pair(&s, &peer, 1 << 20);
	while (len > 0) {
		wait_init(&w, IO_SEND_FILE, &s);
		w.op.file.file = f;
		w.op.file.off = off;
		w.op.file.len = len;
		g_assert_cmpint(wait_op(&w), >, 0);
		g_assert_cmpint(w.res, <=, len);
		check_received(peer, bytes + off, (uint64_t)w.res);
		off += (uint64_t)w.res;
		len -= (uint32_t)w.res;
	}
	sock_close(&s);
	close(peer);
}

#endif
