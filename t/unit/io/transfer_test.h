/* t/unit/io/transfer_test.h -- a reply of each file backend to a client in a thread of its own. */
#ifndef TRANSFER_TEST_H
#define TRANSFER_TEST_H

#include <netinet/tcp.h>
#include "io/sender.h"
#include "t/unit/io/in_dir.h"

static const struct file_backend *backend; /* the one under test */
static struct sender snd;

static struct sender_times times;

static struct body body;

static struct io_sock sock;

static bool ended;

static int end_res;

static void G_GNUC_UNUSED
sender_ended(struct sender *s, int res)
{
	g_assert_false(ended);
	ended = true;
	end_res = res;
}

struct client {
	int fd;
	unsigned pause_us;    /* between reads */
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
static void G_GNUC_UNUSED
pair(bool tcp, int p[2])
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
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

static void G_GNUC_UNUSED
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

static void G_GNUC_UNUSED
client_end(struct client *c)
{
	sock_close(&sock);
	pthread_join(c->thread, NULL);
}

static void G_GNUC_UNUSED
client_free(struct client *c)
{
	g_byte_array_free(c->got, true);
}

static void G_GNUC_UNUSED
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

static void G_GNUC_UNUSED
reply_wait(void)
{
	while (!ended)
		io_run(io);
	body_clear(&body);
}

static void G_GNUC_UNUSED
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

static void G_GNUC_UNUSED
evict(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	fdatasync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

static void G_GNUC_UNUSED
transfer(const char *path, uint64_t size, uint64_t off, uint64_t len, bool tcp, int sndbuf,
    bool cold)
{
	uint64_t sum;
	struct client c = { 0 };
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
	sum = times.read_queue + times.read + times.handover + times.write;
	g_assert_cmpuint(sum, <, 60 * NS_PER_S); /* no difference went below zero */
}

/* ---------------------------------------------------------------- one row for each backend */

struct backend_test {
	const char *name;
	void (*run)(void);
};

static const struct backend_test *backend_tests;

/* arg: number of the backend times a hundred plus that of the test. */
static void
run_one(const void *arg)
{
	int nr = GPOINTER_TO_INT(arg);

	backend = file_backends[nr / 100];
	backend_tests[nr % 100].run();
}

static int
run_each_backend(int argc, char **argv, const struct backend_test *tests, int n)
{
	char *name;
	int i, k;

	g_test_init(&argc, &argv, NULL);
	backend_tests = tests;
	for (i = 0; file_backends[i] != NULL; i++) {
		for (k = 0; k < n; k++) {
			name = g_strdup_printf("/%s/%s", file_backends[i]->name, tests[k].name);
			g_test_add_data_func(name, GINT_TO_POINTER(i * 100 + k), run_one);
			g_free(name);
		}
	}
	return (tests_run());
}

#endif
