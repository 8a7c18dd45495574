/* t/unit/io/aio.c -- gthread-sendfile, posix-aio and linux-aio-sendfile where something is missing or stuck.  (What they do
 * when all is well is transfer.c's.) */
#include <libaio.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include "io/shm.h"
#include "t/unit/io/io_test.h"

extern const struct file_backend file_gthread_sendfile, file_posix_aio, file_linux_aio_sendfile;

static char *dir;

/* ---------------------------------------------------------------- calls that are made to fail, or to wait */

static int memfd_err, fs_type;
static bool sendfile_waits;

int
memfd_create(const char *name, unsigned flags)
{
	if (memfd_err != 0) {
		errno = memfd_err;
		return (-1);
	}
	return ((int)syscall(SYS_memfd_create, name, flags));
}

int
fstatfs(int fd, struct statfs *fs)
{
	int res = (int)syscall(SYS_fstatfs, fd, fs);

	if (fs_type != 0)
		fs->f_type = fs_type;
	return (res);
}

/* The disk hangs in the middle of the call. */
ssize_t
sendfile(int out, int in, off_t *off, size_t len)
{
	if (__atomic_load_n(&sendfile_waits, __ATOMIC_ACQUIRE))
		gate_wait();
	return (syscall(SYS_sendfile, out, in, off, len));
}

/* ---------------------------------------------------------------- one range, whole */

static void
pair(struct io_sock *s, int *peer)
{
	int p[2], size = 1 << 20;

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), ==, 0);
	setsockopt(p[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	g_assert_cmpint(fcntl(p[0], F_SETFL, O_NONBLOCK), ==, 0);
	io_sock_init(s, p[0]);
	*peer = p[1];
}

static void
take(int peer, const char *want, uint64_t n)
{
	g_autofree char *got = g_malloc(n);
	uint64_t have = 0;
	ssize_t k;

	while (have < n && (k = read(peer, got + have, n - have)) > 0)
		have += (uint64_t)k;
	g_assert_cmpuint(have, ==, n);
	g_assert_cmpint(memcmp(got, want, n), ==, 0);
}

/* By SEND_FILE, as many as it takes. */
static void
send_range(struct io_file *f, const char *bytes, uint64_t off, uint32_t len)
{
	struct io_sock s;
	struct waiter w;
	int peer;

	pair(&s, &peer);
	while (len > 0) {
		wait_init(&w, IO_SEND_FILE, &s);
		w.op.file.file = f;
		w.op.file.off = off;
		w.op.file.len = len;
		g_assert_cmpint(wait_op(&w), >, 0);
		g_assert_cmpint(w.res, <=, len);
		take(peer, bytes + off, (uint64_t)w.res);
		off += (uint64_t)w.res;
		len -= (uint32_t)w.res;
	}
	sock_close(&s);
	close(peer);
}

#define SIZE 300001u

/* All of a file of ours, by linux-aio; how its windows are counted then. */
static void
send_by_linux_aio(const char *where, uint64_t *async, uint64_t *sync)
{
	char *path = file_make(where, "aio-unit", SIZE), *bytes;
	struct io_file *f;

	g_assert_true(g_file_get_contents(path, &bytes, NULL, NULL));
	loop_up(&file_linux_aio_sendfile, 2, 64);
	g_assert_true(io_backend(io) == &file_linux_aio_sendfile);
	f = file_open(path, SIZE);
	send_range(f, bytes, 0, SIZE);
	send_range(f, bytes, 4095, 10000);
	*async = io_counters(io)->linux_aio_async;
	*sync = io_counters(io)->linux_aio_sync;
	io_file_put(f);
	loop_down();
	unlink(path);
	g_free(bytes);
	g_free(path);
}

static bool
aio_here(void)
{
	struct statfs fs;

	g_assert_cmpint(statfs(dir, &fs), ==, 0);
	return (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == 0x58465342);
}

/* ---------------------------------------------------------------- linux-aio-sendfile */

static void
test_direct(void)
{
	uint64_t async, sync;

	if (!aio_here()) {
		g_test_skip("the directory for temporary files is neither on ext4 nor on XFS");
		return;
	}
	send_by_linux_aio(dir, &async, &sync);
	g_assert_cmpuint(async, ==, 2);
	g_assert_cmpuint(sync, ==, 0);
}

/* A process takes them all; the loop that comes then does without. */
static void
test_no_slots(void)
{
	io_context_t ctx[64];
	unsigned n = 0, slots;
	const char *why;

	for (slots = 1 << 16; slots > 0 && n < NELEM(ctx); slots = slots / 2) {
		ctx[n] = NULL;
		while (n < NELEM(ctx) && io_setup((int)slots, &ctx[n]) == 0) {
			if (++n < NELEM(ctx))
				ctx[n] = NULL;
		}
	}
	loop_up(&file_linux_aio_sendfile, 1, 64);
	while (n > 0)
		io_destroy(ctx[--n]);
	why = io_fallback_why(io);
	g_assert_true(io_backend(io) == &file_gthread_sendfile);
	g_assert_nonnull(why);
	g_assert_nonnull(strstr(why, "aio-max-nr"));
	loop_down();
}

static void
test_no_shared_memory(void)
{
	uint64_t async, sync;

	memfd_err = ENOSPC;
	send_by_linux_aio(dir, &async, &sync);
	memfd_err = 0;
	g_assert_cmpuint(async, ==, 0);
	g_assert_cmpuint(sync, ==, 2);
}

static void
test_foreign(void)
{
	uint64_t async, sync;

	fs_type = NFS_SUPER_MAGIC;
	send_by_linux_aio(dir, &async, &sync);
	fs_type = 0;
	g_assert_cmpuint(async, ==, 0);
	g_assert_cmpuint(sync, ==, 2);
	if (access("/dev/shm", W_OK) != 0)
		return;
	send_by_linux_aio("/dev/shm", &async, &sync); /* a real one */
	g_assert_cmpuint(async, ==, 0);
	g_assert_cmpuint(sync, ==, 2);
}

/* No file of /proc can be opened with O_DIRECT, whatever fstatfs(2) is made to say. */
static void
test_refused(void)
{
	char *bytes;
	gsize len;
	struct io_file *f;

	g_assert_true(g_file_get_contents("/proc/kallsyms", &bytes, &len, NULL));
	g_assert_cmpuint(len, >, 100000);
	fs_type = EXT4_SUPER_MAGIC;
	loop_up(&file_linux_aio_sendfile, 2, 64);
	f = file_open("/proc/kallsyms", 100000);
	send_range(f, bytes, 0, 100000);
	g_assert_true(f->no_direct);
	g_assert_cmpuint(io_counters(io)->linux_aio_async, ==, 0);
	g_assert_cmpuint(io_counters(io)->linux_aio_sync, ==, 1);
	io_file_put(f);
	loop_down();
	fs_type = 0;
	g_free(bytes);
}

/* More reads than the kernel may have wait for their turn; those that nobody waits for any more are put away. */
static void
test_many(void)
{
	char *path = file_make(dir, "many", 64 << 10);
	struct waiter w[40];
	struct io_sock s[40];
	int peer[40], fds = fd_count();
	struct io_file *f;
	unsigned i;

	loop_up(&file_linux_aio_sendfile, 2, 64);
	f = file_open(path, 64 << 10);
	for (i = 0; i < NELEM(w); i++) {
		pair(&s[i], &peer[i]);
		wait_init(&w[i], IO_SEND_FILE, &s[i]);
		w[i].op.file.file = f;
		w[i].op.file.len = 64 << 10;
		wait_submit(&w[i]);
	}
	for (i = 0; i < NELEM(w); i += 4)
		op_cancel(io, &w[i].op);
	for (i = 0; i < NELEM(w); i++) {
		g_assert_cmpint(wait_for(&w[i]), ==, i % 4 == 0 ? -ECANCELED : 64 << 10);
		sock_close(&s[i]);
		close(peer[i]);
	}
	io_file_put(f);
	loop_down();
	g_assert_cmpint(fd_count(), ==, fds);
	g_free(path);
}

/* The client takes a part and goes: the rest of the window goes with the socket. */
static void
test_kept_window(void)
{
	char *path = file_make(dir, "kept", 4 << 20);
	int peer, fds = fd_count(), little = 20000;
	struct io_file *f;
	struct io_sock s;
	struct waiter w;

	loop_up(&file_linux_aio_sendfile, 2, 64);
	f = file_open(path, 4 << 20);
	pair(&s, &peer);
	setsockopt(s.fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
	wait_init(&w, IO_SEND_FILE, &s);
	w.op.file.file = f;
	w.op.file.len = 1 << 20;
	g_assert_cmpint(wait_op(&w), <, 1 << 20);
	g_assert_nonnull(s.kept);
	g_assert_cmpuint(f->refs, ==, 2);
	sock_close(&s);
	g_assert_null(s.kept);
	g_assert_cmpuint(f->refs, ==, 1);
	close(peer);
	io_file_put(f);
	loop_down();
	g_assert_cmpint(fd_count(), ==, fds);
	g_free(path);
}

/* ---------------------------------------------------------------- shared memory */

static void
fill(struct shm *w, uint32_t size, char c)
{
	g_assert_cmpint(shm_renew(w, size), ==, 0);
	memset(w->map, c, size);
}

/* sendfile(2) passes on pages: what is queued must not see what the window is used for next. */
static void
test_pages_in_flight(void)
{
	const uint32_t size = 64 << 10;
	char want[64 << 10];
	struct shm_pool pool;
	struct shm *w, *again;
	struct io_sock s;
	off_t at = 0;
	int peer;

	shm_pool_init(&pool, size, 1);
	g_assert_cmpint(shm_get(&pool, &w), ==, 0);
	g_assert_cmpint(shm_get(&pool, &again), ==, -ENOBUFS);
	fill(w, size, 'a');
	pair(&s, &peer);
	g_assert_cmpint(sendfile(s.fd, w->fd, &at, size), ==, size);
	g_assert_true(shm_put(&pool, w));
	g_assert_cmpint(shm_get(&pool, &again), ==, 0);
	g_assert_true(again == w);
	fill(again, size, 'b');
	memset(want, 'a', size);
	take(peer, want, size);
	memset(want, 'b', size);
	g_assert_cmpint(memcmp(again->map, want, size), ==, 0);
	g_assert_true(shm_put(&pool, again));
	shm_pool_free(&pool);
	close(s.fd);
	close(peer);
}

/* ---------------------------------------------------------------- gthread-sendfile: a thread hangs in the disk */

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

/* Its client's deadline comes, the connection is closed and its number given to another one: nothing of the file reaches
 * anybody, and no event of the old socket the memory where it was. */
static void
test_stuck_sender(void)
{
	char *path = file_make(dir, "stuck", 1 << 20), byte;
	struct io_sock *old = g_new(struct io_sock, 1), s;
	int peer, other, number, fds = fd_count();
	struct io_file *f;
	struct waiter w, r;

	loop_up(&file_gthread_sendfile, 1, 64);
	f = file_open(path, 1 << 20);
	pair(old, &peer);
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
	g_assert_cmpint(read(peer, &byte, 1), ==, 0); /* it sees the end at once, not when the disk answers */
	close(peer);
	run_ms(10); /* the events of that */
	g_assert_cmpint(old->hints, ==, 0x55);
	g_free(old);

	pair(&s, &other);
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

/* The queue of a disk is full: the duplicate that was made for the thread goes at once, not when that disk answers. */
static void
test_refused_sender(void)
{
	char *path = file_make(dir, "refused", SIZE), byte;
	struct waiter w[2];
	struct io_sock s[2];
	struct io_file *f;
	int peer[2], i;

	loop_up(&file_gthread_sendfile, 1, 1);
	f = file_open(path, SIZE);
	gate_enter_dev(LANE_STAT, io_file_dev(f)); /* whoever closes files of that disk */
	gate_enter_dev(LANE_READ, io_file_dev(f));
	for (i = 0; i < 2; i++) { /* one waits, one is too many */
		pair(&s[i], &peer[i]);
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
	loop_down();
	g_free(path);
}

/* A thread waits for disks only: while a client does not read, others get their files from the one there is. */
static void
test_slow_client_holds_no_thread(void)
{
	char *path = file_make(dir, "slow", SIZE), *bytes;
	struct io_sock s;
	struct waiter w;
	struct io_file *f;
	int peer;

	g_assert_true(g_file_get_contents(path, &bytes, NULL, NULL));
	loop_up(&file_gthread_sendfile, 1, 64);
	f = file_open(path, SIZE);
	pair(&s, &peer);
	wait_init(&w, IO_SEND_FILE, &s);
	w.op.file.file = f;
	do { /* until its socket is full */
		w.op.file.len = SIZE;
		wait_submit(&w);
		run_ms(20);
	} while (w.done);
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

/* ---------------------------------------------------------------- posix-aio */

static void
read_init(struct waiter *w, struct io_file *f, uint64_t off, uint32_t deadline_ms)
{
	wait_init(w, IO_READ, NULL);
	w->op.file.file = f;
	w->op.file.off = off;
	w->op.file.len = 4000;
	w->op.deadline_ms = deadline_ms;
}

/* A pipe is read like a file that hangs.  One read is all that a device may have under way: others of pipes wait, and in
 * vain, a file of another device does not; then the pipe gives way. */
static void
posix_waits(void)
{
	char *path = file_make(dir, "posix", 5000);
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
	g_assert_cmpuint(io_counters(io)->posix_aio_async, ==, 3);
	g_assert_cmpuint(io_counters(io)->posix_aio_sync, ==, 0);
	close(p[1]);
	close(q[1]);
	io_file_put(f);
	io_file_put(g);
	io_file_put(h);
	g_free(path);
}

static void
test_posix_waits(void)
{
	loop_up(&file_posix_aio, 1, 64);
	if (io_backend(io) == &file_posix_aio)
		posix_waits();
	else
		g_test_skip(io_fallback_why(io));
	loop_down();
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	dir = g_dir_make_tmp("io-aio-XXXXXX", NULL);
	g_test_add_func("/linux-aio/direct", test_direct);
	g_test_add_func("/linux-aio/no-slots", test_no_slots);
	g_test_add_func("/linux-aio/no-shared-memory", test_no_shared_memory);
	g_test_add_func("/linux-aio/foreign-file-system", test_foreign);
	g_test_add_func("/linux-aio/direct-refused", test_refused);
	g_test_add_func("/linux-aio/many", test_many);
	g_test_add_func("/linux-aio/kept-window", test_kept_window);
	g_test_add_func("/linux-aio/pages-in-flight", test_pages_in_flight);
	g_test_add_func("/gthread-sendfile/stuck-sender", test_stuck_sender);
	g_test_add_func("/gthread-sendfile/refused-sender", test_refused_sender);
	g_test_add_func("/gthread-sendfile/slow-client", test_slow_client_holds_no_thread);
	g_test_add_func("/posix-aio/waits", test_posix_waits);
	return (run_in(dir));
}
