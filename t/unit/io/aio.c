/* t/unit/io/aio.c -- linux-aio-sendfile without memory, slots, O_DIRECT or a known file system. */
#include <libaio.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include "io/shm.h"
#include "t/unit/io/in_dir.h"

extern const struct file_backend file_gthread_sendfile, file_posix_aio, file_linux_aio_sendfile;

static int memfd_err, fs_type;

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

/* Programs that start meanwhile do not get the second descriptor of a file. */
int
io_submit(io_context_t ctx, long n, struct iocb **cb)
{
	long i;

	for (i = 0; i < n; i++)
		g_assert_cmpint(fcntl(cb[i]->aio_fildes, F_GETFD) & FD_CLOEXEC, !=, 0);
	n = syscall(SYS_io_submit, ctx, n, cb);
	return ((int)(n < 0 ? -errno : n));
}

static unsigned refuse_reads; /* this many reads of the kernel fail from now on */

int
io_getevents(io_context_t ctx, long min, long max, struct io_event *ev, struct timespec *limit)
{
	long i, n = syscall(SYS_io_getevents, ctx, min, max, ev, limit);

	for (i = 0; i < n && refuse_reads > 0; i++, refuse_reads--)
		ev[i].res = (unsigned long)-EINVAL;
	return ((int)n);
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
	*async = io->counters->linux_aio_async;
	*sync = io->counters->linux_aio_sync;
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

TEST("/linux-aio/direct")
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

/* Another process takes all slots; a loop that starts then works without. */
TEST("/linux-aio/no-slots")
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

TEST("/linux-aio/no-shared-memory")
{
	uint64_t async, sync;

	memfd_err = ENOSPC;
	send_by_linux_aio(dir, &async, &sync);
	memfd_err = 0;
	g_assert_cmpuint(async, ==, 0);
	g_assert_cmpuint(sync, ==, 2);
}

TEST("/linux-aio/foreign-file-system")
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

/* No file of /proc opens with O_DIRECT, although fstatfs(2) pretends here that it is on ext4. */
TEST("/linux-aio/direct-refused")
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
	g_assert_cmpuint(io->counters->linux_aio_async, ==, 0);
	g_assert_cmpuint(io->counters->linux_aio_sync, ==, 1);
	io_file_put(f);
	loop_down();
	fs_type = 0;
	g_free(bytes);
}

/* Some file systems take the read and refuse it afterwards: a thread reads the same window. */
TEST("/linux-aio/direct-refused-late")
{
	uint64_t async, sync;

	if (!aio_here()) {
		g_test_skip("the directory for temporary files is neither on ext4 nor on XFS");
		return;
	}
	refuse_reads = 1;
	send_by_linux_aio(dir, &async, &sync);
	g_assert_cmpuint(refuse_reads, ==, 0);
	g_assert_cmpuint(async, ==, 0);
	g_assert_cmpuint(sync, ==, 2);
}

/* More reads than the kernel may have wait for their turn; cancelled ones are dropped. */
TEST("/linux-aio/many")
{
	g_autofree char *path = file_make(dir, "many", 64 << 10);
	struct waiter w[40];
	struct io_sock s[40];
	int peer[40], fds = fd_count();
	struct io_file *f;
	unsigned i;

	loop_up(&file_linux_aio_sendfile, 2, 64);
	f = file_open(path, 64 << 10);
	for (i = 0; i < NELEM(w); i++) {
		unix_pair(&s[i], &peer[i], 1 << 20);
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
}

/* The client takes a part and goes: the rest of the window goes with the socket. */
TEST("/linux-aio/kept-window")
{
	g_autofree char *path = file_make(dir, "kept", 4 << 20);
	int peer, fds = fd_count(), little = 20000;
	struct io_file *f;
	struct io_sock s;
	struct waiter w;

	loop_up(&file_linux_aio_sendfile, 2, 64);
	f = file_open(path, 4 << 20);
	unix_pair(&s, &peer, 1 << 20);
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
}

static void
fill(struct shm *w, uint32_t size, char c)
{
	g_assert_cmpint(shm_renew(w, size), ==, 0);
	memset(w->map, c, size);
}

/* sendfile(2) queues pages: queued bytes must not change when the window is used again. */
TEST("/linux-aio/pages-in-flight")
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
	unix_pair(&s, &peer, 1 << 20);
	g_assert_cmpint(sendfile(s.fd, w->fd, &at, size), ==, size);
	g_assert_true(shm_put(&pool, w));
	g_assert_cmpint(shm_get(&pool, &again), ==, 0);
	g_assert_true(again == w);
	fill(again, size, 'b');
	memset(want, 'a', size);
	check_received(peer, want, size);
	memset(want, 'b', size);
	g_assert_cmpint(memcmp(again->map, want, size), ==, 0);
	g_assert_true(shm_put(&pool, again));
	shm_pool_free(&pool);
	close(s.fd);
	close(peer);
}
