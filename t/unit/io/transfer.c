/* t/unit/io/transfer.c -- bodies and the sender: every backend byte for byte, whatever happens midway. */
#include <netinet/tcp.h>
#include "io/sender.h"
#include "t/unit/io/io_test.h"

static const struct file_backend *backend; /* the one under test */
static char *dir;
static struct sender snd;
static struct sender_times times;
static struct body body;
static struct io_sock sock;
static bool ended;
static int end_res;
static uint64_t done_at;

static void
sender_ended(struct sender *s, int res)
{
	g_assert_false(ended);
	ended = true;
	end_res = res;
}

/* ---------------------------------------------------------------- the client: a thread */

struct client {
	int fd;
	unsigned pause_us;   /* between reads */
	uint64_t leave_after; /* bytes, 0: stays */
	GByteArray *got;
	pthread_t thread;
};

static void *
client_run(void *arg)
{
	struct client *c = arg;
	static __thread char buf[65536];
	ssize_t n;

	while ((n = read(c->fd, buf, sizeof(buf))) > 0) {
		g_byte_array_append(c->got, (guint8 *)buf, (guint)n);
		if (c->leave_after != 0 && c->got->len >= c->leave_after)
			break;
		if (c->pause_us != 0)
			g_usleep(c->pause_us);
	}
	close(c->fd);
	return (NULL);
}

/* A pair of TCP sockets, or of unix ones. */
static void
pair(bool tcp, int p[2])
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int l;

	if (!tcp) {
		g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p), ==, 0);
	} else {
		l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		g_assert_cmpint(bind(l, (struct sockaddr *)&in, len), ==, 0);
		g_assert_cmpint(listen(l, 1), ==, 0);
		g_assert_cmpint(getsockname(l, (struct sockaddr *)&in, &len), ==, 0);
		p[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		g_assert_cmpint(connect(p[1], (struct sockaddr *)&in, len), ==, 0);
		p[0] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
		close(l);
	}
	g_assert_cmpint(fcntl(p[0], F_SETFL, O_NONBLOCK), ==, 0);
}

static void
client_start(struct client *c, bool tcp, int sndbuf)
{
	int p[2];

	pair(tcp, p);
	if (sndbuf != 0)
		setsockopt(p[0], SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf));
	io_sock_init(&sock, p[0]);
	c->fd = p[1];
	c->got = g_byte_array_new();
	g_assert_cmpint(pthread_create(&c->thread, NULL, client_run, c), ==, 0);
}

static void
client_end(struct client *c)
{
	sock_close(&sock);
	pthread_join(c->thread, NULL);
}

static void
client_free(struct client *c)
{
	g_byte_array_free(c->got, true);
}

/* ---------------------------------------------------------------- a reply */

static void
reply_start(struct io_file *f, uint64_t off, uint64_t len)
{
	ended = false;
	body_init(&body, io);
	g_assert_true(body_copy(&body, TEXT("HEAD")));
	g_assert_true(body_file(&body, f, off, len));
	g_assert_true(body_copy(&body, TEXT("TAIL")));
	sender_init(&snd, io, &sock);
	snd.times = &times;
	snd.exact = true;
	sender_start(&snd, &body, 10000, sender_ended);
	g_assert_false(ended);
}

static void
reply_wait(void)
{
	while (!ended)
		io_run(io);
	body_clear(&body);
}

static void
check_bytes(const GByteArray *got, uint64_t off, uint64_t len)
{
	uint64_t i;

	g_assert_cmpuint(got->len, ==, len + 8);
	g_assert_cmpmem(got->data, 4, "HEAD", 4);
	for (i = 0; i < len; i++) {
		if ((char)got->data[4 + i] != pattern(off + i))
			g_error("%s: byte %lu differs", backend->name, (unsigned long)i);
	}
	g_assert_cmpmem(got->data + 4 + len, 4, "TAIL", 4);
}

static void
evict(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	fdatasync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

static void
transfer(const char *path, uint64_t size, uint64_t off, uint64_t len, bool tcp, int sndbuf, bool cold)
{
	struct client c = {0};
	struct io_file *f;

	if (cold)
		evict(path);
	f = file_open(path, size);
	client_start(&c, tcp, sndbuf);
	reply_start(f, off, len);
	io_file_put(f);
	reply_wait();
	g_assert_cmpint(end_res, ==, 0);
	g_assert_cmpuint(snd.sent, ==, len + 8);
	client_end(&c);
	check_bytes(c.got, off, len);
	client_free(&c);
	g_assert_cmpuint(times.write_start_wall, >, 1000000000 * NS_PER_S);
	done_at = times.read_queue + times.read + times.handover + times.write;
	g_assert_cmpuint(done_at, <, 60 * NS_PER_S); /* no difference went below zero */
}

/* Whole, and ranges that begin and end in the middle of pages. */
static void
sizes_by(uint32_t chunk)
{
	static const uint64_t sizes[] = {0, 1, 4095, 4096, 4097, 65535, 65537, 100 << 10, 100001, IO_WINDOW, IO_WINDOW + 1,
	    (1 << 20) - 1, (1 << 20) + 1, 10 << 20};
	uint64_t n;
	size_t i;
	char *path;

	loop_up(backend, 4, 64);
	if (chunk != 0)
		io->chunk = chunk;
	for (i = 0; i < NELEM(sizes); i++) {
		n = sizes[i];
		if (chunk != 0 && n > 2 << 20)
			continue; /* nothing new in 2560 pieces */
		path = file_make(dir, "f", n);
		transfer(path, n, 0, n, false, 0, false);
		transfer(path, n, 0, n, true, 0, true);
		transfer(path, n, n / 3, n / 2, true, 0, false);
		transfer(path, n, n / 2, n - n / 2, true, 0, true);
		if (n > 4100) {
			transfer(path, n, 4095, n - 4095, true, 0, true);
			transfer(path, n, 1, 4095, true, 0, true);
			transfer(path, n, 4096, n - 4100, false, 0, false);
		}
		g_free(path);
	}
	loop_down();
}

static void
test_sizes(void)
{
	sizes_by(0);
}

static void
test_chunk_4096(void)
{
	sizes_by(4096);
}

static void
test_chunk_odd(void)
{
	sizes_by(5000);
}

/* Buffers are used again while what was in them is still on its way: nothing may change there. */
static void
test_slow_client(void)
{
	char *path = file_make(dir, "f", 3 << 20);
	struct client c = {.pause_us = 2000};
	struct io_file *f;

	loop_up(backend, 4, 64);
	io->chunk = 64 << 10;
	evict(path);
	f = file_open(path, 3 << 20);
	client_start(&c, true, 1 << 20);
	reply_start(f, 0, 3 << 20);
	reply_wait();
	g_assert_cmpint(end_res, ==, 0);
	client_end(&c);
	check_bytes(c.got, 0, 3 << 20);
	client_free(&c);
	io_file_put(f);
	loop_down();
	g_free(path);
}

static void
test_tiny_buffer(void)
{
	char *path = file_make(dir, "f", 600001);

	loop_up(backend, 4, 64);
	transfer(path, 600001, 0, 600001, false, 1, false);
	transfer(path, 600001, 0, 600001, true, 1, true);
	transfer(path, 600001, 599000, 1001, true, 1, false);
	loop_down();
	g_free(path);
}

/* Many ranges of one file between memory, more pieces than are inline. */
static void
test_multipart(void)
{
	char *path = file_make(dir, "f", 1000000), sep[32];
	GByteArray *want = g_byte_array_new();
	struct client c = {0};
	struct io_file *f;
	uint64_t i, k, off;

	loop_up(backend, 4, 64);
	f = file_open(path, 1000000);
	client_start(&c, true, 0);
	body_init(&body, io);
	for (i = 0; i < 16; i++) {
		snprintf(sep, sizeof(sep), "--part %d--", (int)i);
		off = i * 61111;
		g_assert_true(body_copy(&body, text_of(sep)));
		g_assert_true(body_file(&body, f, off, 1000 * i));
		g_byte_array_append(want, (guint8 *)sep, (guint)strlen(sep));
		for (k = 0; k < 1000 * i; k++)
			g_byte_array_append(want, (guint8[]){(guint8)pattern(off + k)}, 1);
	}
	io_file_put(f);
	ended = false;
	sender_init(&snd, io, &sock);
	sender_start(&snd, &body, 10000, sender_ended);
	reply_wait();
	g_assert_cmpint(end_res, ==, 0);
	client_end(&c);
	g_assert_cmpmem(c.got->data, c.got->len, want->data, want->len);
	client_free(&c);
	g_byte_array_free(want, true);
	loop_down();
	g_free(path);
}

/* ---------------------------------------------------------------- what goes wrong midway */

static void
test_vanishing_peer(void)
{
	char *path = file_make(dir, "f", 4 << 20);
	struct client c;
	struct io_file *f;
	uint64_t i;

	loop_up(backend, 4, 64);
	f = file_open(path, 4 << 20);
	for (i = 1; i < 12; i++) {
		c = (struct client){.leave_after = i * 50000};
		client_start(&c, i % 2 != 0, 20000);
		reply_start(f, 0, 4 << 20);
		reply_wait();
		g_assert_true(end_res == -EPIPE || end_res == -ECONNRESET);
		client_end(&c);
		client_free(&c);
	}
	g_assert_cmpuint(f->refs, ==, 1);
	io_file_put(f);
	loop_down();
	g_free(path);
}

static void
test_truncated(void)
{
	char *path = file_make(dir, "f", 4 << 20);
	struct client c = {.pause_us = 200};
	struct io_file *f;
	uint64_t i, n;

	loop_up(backend, 4, 64);
	f = file_open(path, 4 << 20);
	client_start(&c, true, 20000);
	reply_start(f, 0, 4 << 20);
	for (i = 0; i < 20 && !ended; i++)
		io_run(io);
	g_assert_cmpint(truncate(path, 1500000), ==, 0);
	reply_wait();
	g_assert_cmpint(end_res, ==, -ENODATA);
	client_end(&c);
	g_assert_cmpuint(c.got->len, <=, snd.sent);
	/* More may have been accepted before the cut; sendfile(2) queued those pages by reference. */
	n = c.got->len - 4 < 1500000 ? c.got->len - 4 : 1500000;
	for (i = 0; i < n; i++)
		g_assert_true((char)c.got->data[4 + i] == pattern(i)); /* nothing padded */
	client_free(&c);
	io_file_put(f);
	loop_down();
	g_free(path);
}

static void
test_silent_peer(void)
{
	char *path = file_make(dir, "f", 8 << 20);
	struct io_file *f;
	int p[2];

	loop_up(backend, 4, 64);
	f = file_open(path, 8 << 20);
	pair(true, p);
	io_sock_init(&sock, p[0]);
	ended = false;
	body_init(&body, io);
	g_assert_true(body_file(&body, f, 0, 8 << 20));
	sender_init(&snd, io, &sock);
	sender_start(&snd, &body, 100, sender_ended);
	reply_wait();
	g_assert_cmpint(end_res, ==, -ETIMEDOUT);
	sock_close(&sock);
	close(p[1]);
	io_file_put(f);
	loop_down();
	g_free(path);
}

static void
test_cancel(void)
{
	char *path = file_make(dir, "f", 3 << 20);
	struct client c;
	struct io_file *f;
	int i, k;

	loop_up(backend, 2, 64);
	for (i = 0; i < 60; i++) {
		if (i % 4 == 0)
			evict(path);
		f = file_open(path, 3 << 20);
		c = (struct client){.pause_us = (unsigned)i};
		client_start(&c, i % 2 == 0, i % 2 == 0 ? 0 : 30000);
		reply_start(f, 0, 3 << 20);
		io_file_put(f);
		for (k = 0; k < i / 2 && !ended; k++)
			io_run(io);
		sender_cancel(&snd);
		reply_wait();
		g_assert_true(end_res == -ECANCELED || end_res == 0);
		client_end(&c);
		client_free(&c);
	}
	loop_down();
	g_free(path);
}

static bool
backend_is(const char *name)
{
	return (strcmp(io_backend(io)->name, name) == 0);
}

/* All readers are stuck: the client gets its deadline, others their files once one is free. */
static void
test_stuck_readers(void)
{
	char *path = file_make(dir, "f", 300000);
	struct client c = {0};
	struct io_file *f;
	bool own, threads;

	loop_up(backend, 1, 64);
	f = file_open(path, 300000);
	f->no_nowait = true; /* as on a network file system: only a reader can tell */
	gate_enter(LANE_READ);
	client_start(&c, true, 0);
	ended = false;
	body_init(&body, io);
	g_assert_true(body_file(&body, f, 0, 300000));
	sender_init(&snd, io, &sock);
	sender_start(&snd, &body, 100, sender_ended);
	reply_wait();
	own = backend_is("posix-aio") || backend_is("io-uring"); /* threads, or the kernel's */
	g_assert_cmpint(end_res, ==, own ? 0 : -ETIMEDOUT);
	client_end(&c);
	client_free(&c);
	gate_leave();
	transfer(path, 300000, 0, 300000, true, 0, false);
	threads = backend_is("gthread-aio") || backend_is("gthread-sendfile") || backend_is("posix-aio") ||
	    backend_is("linux-aio-sendfile");
	g_assert_cmpint(times.hot, ==, !threads && io_counters(io)->file_inline != 0);
	io_file_put(f);
	loop_down();
	g_free(path);
}

/* Asked once per window and second, however many clients and short counts. */
static void
test_resident(void)
{
	char *path = file_make(dir, "f", 700000);
	struct io_file *f;

	loop_up(backend, 1, 64);
	f = file_open(path, 700000);
	g_assert_cmpuint(io_file_resident(f, 100, 650000), ==, 650000);
	f->no_nowait = true; /* would say no now, but the proof stands for a second */
	g_assert_cmpuint(io_file_resident(f, 300000, 400000), ==, 400000);
	io_file_put(f);
	f = file_open(path, 700000);
	f->no_nowait = true;
	g_assert_cmpuint(io_file_resident(f, 0, 1), ==, 0);
	io_file_proved(f, 1000, IO_WINDOW);
	g_assert_cmpuint(io_file_resident(f, 0, 1), ==, 0);
	g_assert_cmpuint(io_file_resident(f, 1000, 700000), ==, IO_WINDOW);
	g_assert_cmpuint(io_file_resident(f, 1000 + IO_WINDOW, 1), ==, 0);
	io_file_put(f);
	f = file_open(path, 100);
	f->no_nowait = true;
	io_file_proved(f, 0, 100);
	g_assert_cmpuint(f->resident_ns, !=, 0);
	g_assert_cmpuint(io_file_resident(f, 0, 100), ==, 100);
	run_ms(1010);
	g_assert_cmpuint(io_file_resident(f, 0, 100), ==, 0);
	io_file_put(f);
	loop_down();
	g_free(path);
}

/* Both ends of a window in memory and its middle not: read at once, not sent byte by byte. */
static void
test_holes_in_cache(void)
{
	char *path = file_make(dir, "f", 3 << 20);
	struct client c = {0};
	struct io_file *f;
	uint64_t i;
	char byte;

	loop_up(backend, 4, 64);
	evict(path);
	f = file_open(path, 3 << 20);
	posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < 3 << 20; i += IO_WINDOW) {
		g_assert_cmpint(pread(f->fd, &byte, 1, (off_t)i), ==, 1);
		g_assert_cmpint(pread(f->fd, &byte, 1, (off_t)(i + IO_WINDOW - 1)), ==, 1);
	}
	client_start(&c, true, 0);
	reply_start(f, 0, 3 << 20);
	reply_wait();
	g_assert_cmpint(end_res, ==, 0);
	g_assert_cmpuint(io_counters(io)->file_inline, <, 500);
	client_end(&c);
	check_bytes(c.got, 0, 3 << 20);
	client_free(&c);
	io_file_put(f);
	loop_down();
	g_free(path);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"sizes", test_sizes},
	{"chunk-4096", test_chunk_4096},
	{"chunk-odd", test_chunk_odd},
	{"tiny-buffer", test_tiny_buffer},
	{"slow-client", test_slow_client},
	{"multipart", test_multipart},
	{"vanishing-peer", test_vanishing_peer},
	{"truncated", test_truncated},
	{"silent-peer", test_silent_peer},
	{"cancel", test_cancel},
	{"stuck-readers", test_stuck_readers},
	{"resident", test_resident},
	{"holes-in-cache", test_holes_in_cache},
};

/* Number of the backend times a hundred plus that of the test. */
static void
run_one(const void *arg)
{
	int nr = GPOINTER_TO_INT(arg);

	backend = file_backends[nr / 100];
	tests[nr % 100].run();
}

int
main(int argc, char **argv)
{
	char *name;
	int i, k;

	g_test_init(&argc, &argv, NULL);
	dir = g_dir_make_tmp("io-transfer-XXXXXX", NULL);
	for (i = 0; file_backends[i] != NULL; i++) {
		for (k = 0; k < (int)NELEM(tests); k++) {
			name = g_strdup_printf("/%s/%s", file_backends[i]->name, tests[k].name);
			g_test_add_data_func(name, GINT_TO_POINTER(i * 100 + k), run_one);
			g_free(name);
		}
	}
	return (run_in(dir));
}
