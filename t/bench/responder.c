/* responder -- the application behind a proxy in benchmarks: answers at once, by FastCGI and HTTP.
 *
 *   responder --port PORT --socket PATH
 *
 * HTTP/1.1 on 127.0.0.1:PORT, FastCGI on the unix socket PATH; connections are kept if the other
 * side asks for it.  The path of a request chooses the answer:
 *
 *   /1m...      1 MiB          /upload...   the length of the body, in 16 digits
 *   /slow...    1 kB after 5 s              anything else   1 kB
 *
 * One thread, one epoll, answers prepared at the start: it costs as little as a program can, so
 * that what is measured is the proxy.  Requests are trusted: this is not for others' clients.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "t/bench/args.h"

#define HEAD_MAX  16384
#define RECV_MAX  (256u << 10)
#define SLOW_NS   5000000000ull
#define FCGI_HEAD 8
#define FCGI_ID   1 /* the only request of a connection */
#define FCGI_MOST 65528

enum { FCGI_BEGIN = 1, FCGI_END = 3, FCGI_PARAMS = 4, FCGI_STDIN = 5, FCGI_STDOUT = 6 };
enum answer { ANSWER_1K, ANSWER_1M, ANSWER_UPLOAD, ANSWERS };

struct bytes {
	char *p;
	size_t n, length_at; /* where the 16 digits of an upload's answer are */
};

struct conn {
	int fd;
	bool fcgi, keep, slow, in_slow, writing;
	enum answer answer;
	uint64_t body_left, body; /* HTTP: bytes to come; all bytes of the body */
	/* of the current FastCGI record */
	unsigned type;
	size_t content_left, padding_left;
	char head[HEAD_MAX]; /* unfinished */
	size_t n;
	const char *out;
	size_t out_left;
	char *own; /* an answer of its own, with the length of its upload */
	uint64_t due;
	struct conn *next_slow;
};

static struct bytes answers[2][ANSWERS]; /* HTTP, FastCGI */
static struct conn *slow_first, **slow_last = &slow_first;
static int epoll_fd;
static char input[RECV_MAX];

static uint64_t
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
}

/* ---- prepared answers */

static size_t
record(char *at, unsigned type, const char *content, size_t n)
{
	const unsigned char head[FCGI_HEAD] = { 1, (unsigned char)type, 0, FCGI_ID,
		(unsigned char)(n >> 8), (unsigned char)n, 0, 0 };

	memcpy(at, head, sizeof(head));
	memcpy(at + sizeof(head), content, n);
	return (sizeof(head) + n);
}

static void
make_fcgi(struct bytes *b, const char *text, size_t n)
{
	static const char end[8];
	size_t at, part;

	b->p = malloc(n + (n / FCGI_MOST + 4) * FCGI_HEAD + sizeof(end));
	if (b->p == NULL)
		exit(71);
	for (at = 0; at < n; at += part) {
		part = n - at < FCGI_MOST ? n - at : FCGI_MOST;
		b->n += record(b->p + b->n, FCGI_STDOUT, text + at, part);
	}
	b->length_at = b->n - 16;
	b->n += record(b->p + b->n, FCGI_STDOUT, "", 0);
	b->n += record(b->p + b->n, FCGI_END, end, sizeof(end));
}

static void
make_answer(enum answer which, size_t size)
{
	struct bytes *http = &answers[0][which];
	int line, fields;

	http->p = malloc(size + 200);
	if (http->p == NULL)
		exit(71);
	line = sprintf(http->p, "HTTP/1.1 200 OK\r\n");
	fields = sprintf(http->p + line,
	    "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n", size);
	memset(http->p + line + fields, 'x', size);
	http->n = (size_t)(line + fields) + size;
	http->length_at = http->n - 16;
	make_fcgi(&answers[1][which], http->p + line, http->n - (size_t)line);
}

/* ---- the end of a connection, and its answer */

static void
conn_free(struct conn *c)
{
	if (c->in_slow) {
		c->slow = false; /* freed when its time comes */
		if (c->fd >= 0)
			close(c->fd);
		c->fd = -1;
		return;
	}
	if (c->fd >= 0)
		close(c->fd);
	free(c->own);
	free(c);
}

/* False: the connection is gone. */
static bool
conn_write(struct conn *c)
{
	ssize_t n;

	while (c->out_left > 0) {
		n = send(c->fd, c->out, c->out_left, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return (true);
		if (n < 0) {
			conn_free(c);
			return (false);
		}
		c->out += n;
		c->out_left -= (size_t)n;
	}
	c->writing = false;
	free(c->own);
	c->own = NULL;
	if (c->keep)
		return (true);
	conn_free(c);
	return (false);
}

static bool
conn_answer(struct conn *c)
{
	const struct bytes *b = &answers[c->fcgi][c->answer];
	char digits[17];

	c->writing = true;
	c->out = b->p;
	c->out_left = b->n;
	if (c->answer == ANSWER_UPLOAD) {
		c->own = malloc(b->n);
		if (c->own == NULL)
			exit(71);
		memcpy(c->own, b->p, b->n);
		snprintf(digits, sizeof(digits), "%016llu", (unsigned long long)c->body);
		memcpy(c->own + b->length_at, digits, 16);
		c->out = c->own;
	}
	return (conn_write(c));
}

static bool
conn_asked(struct conn *c)
{
	if (!c->slow)
		return (conn_answer(c));
	c->due = now() + SLOW_NS;
	c->in_slow = true;
	c->next_slow = NULL;
	*slow_last = c;
	slow_last = &c->next_slow;
	return (true);
}

static void
choose(struct conn *c, const char *head, size_t n)
{
	c->slow = memmem(head, n, "/slow", 5) != NULL;
	c->answer = memmem(head, n, "/1m", 3) != NULL       ? ANSWER_1M
		    : memmem(head, n, "/upload", 7) != NULL ? ANSWER_UPLOAD
							    : ANSWER_1K;
	c->body = 0;
}

/* ---- HTTP: one request after the other, never two at once */

static bool
http_head(struct conn *c, char *end)
{
	char *length;

	*end = '\0';
	choose(c, c->head, (size_t)(end - c->head));
	length = strcasestr(c->head, "\r\ncontent-length:");
	c->body_left = length != NULL ? strtoull(length + 17, NULL, 10) : 0;
	c->keep = strcasestr(c->head, "\r\nconnection: close") == NULL &&
		  strstr(c->head, " HTTP/1.0\r\n") == NULL;
	return (c->body_left > 0 || conn_asked(c));
}

static bool
http_bytes(struct conn *c, const char *p, size_t n)
{
	size_t take, before = c->n;
	char *end;

	if (c->body_left == 0) {
		take = n < sizeof(c->head) - 1 - c->n ? n : sizeof(c->head) - 1 - c->n;
		memcpy(c->head + c->n, p, take);
		c->n += take;
		end = memmem(c->head, c->n, "\r\n\r\n", 4);
		if (end == NULL)
			return (true);
		take = (size_t)(end + 4 - c->head) - before;
		p += take;
		n -= take;
		c->n = 0;
		if (!http_head(c, end))
			return (false);
	}
	take = n < c->body_left ? n : c->body_left;
	c->body += take;
	c->body_left -= take;
	return (take == 0 || c->body_left > 0 || conn_asked(c));
}

/* ---- FastCGI */

static bool
fcgi_record(struct conn *c)
{
	const unsigned char *h = (const unsigned char *)c->head;

	c->type = h[1];
	c->content_left = (size_t)(h[4] << 8 | h[5]);
	c->padding_left = h[6];
	c->n = 0;
	if (h[3] != FCGI_ID)
		die("FastCGI", "expected request id 1");
	return (c->type != FCGI_STDIN || c->content_left > 0 || conn_asked(c));
}

static void
fcgi_content(struct conn *c, const char *p, size_t n)
{
	if (c->type == FCGI_BEGIN)
		c->keep = (p[2] & 1) != 0;
	else if (c->type == FCGI_PARAMS)
		choose(c, p, n);
	else if (c->type == FCGI_STDIN)
		c->body += n;
}

/* Contents of BEGIN and PARAMS are used whole; proxies send them in one piece. */
static bool
fcgi_bytes(struct conn *c, const char *p, size_t n)
{
	size_t take;

	while (n > 0) {
		if (c->content_left + c->padding_left > 0) {
			take = n < c->content_left ? n : c->content_left;
			if (take > 0)
				fcgi_content(c, p, take);
			c->content_left -= take;
			p += take;
			n -= take;
			take = n < c->padding_left ? n : c->padding_left;
			c->padding_left -= take;
			p += take;
			n -= take;
			continue;
		}
		take = n < FCGI_HEAD - c->n ? n : FCGI_HEAD - c->n;
		memcpy(c->head + c->n, p, take);
		c->n += take;
		p += take;
		n -= take;
		if (c->n == FCGI_HEAD && !fcgi_record(c))
			return (false);
	}
	return (true);
}

/* ---- the loop */

static void
conn_read(struct conn *c)
{
	ssize_t n;

	while ((n = recv(c->fd, input, sizeof(input), 0)) > 0) {
		if (!(c->fcgi ? fcgi_bytes : http_bytes)(c, input, (size_t)n))
			return;
		if ((size_t)n < sizeof(input) && !c->fcgi)
			break; /* the edge comes again */
	}
	if (n == 0 || (n < 0 && errno != EAGAIN))
		conn_free(c);
}

static void
conn_new(int fd, bool fcgi)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	struct conn *c = calloc(1, sizeof(*c));
	int on = 1;

	if (c == NULL)
		exit(71);
	c->fd = fd;
	c->fcgi = fcgi;
	if (!fcgi)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	ev.data.ptr = c;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
		conn_free(c);
}

static int
listen_on(const void *addr, socklen_t len)
{
	int on = 1,
	    fd = socket(((const struct sockaddr *)addr)->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, addr, len) != 0 || listen(fd, 8192) != 0)
		die("listen", strerror(errno));
	return (fd);
}

/* The key of a listener is a pointer to the number of its descriptor. */
static void
watch_listener(int *fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = fd };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, *fd, &ev) != 0)
		die("epoll_ctl", strerror(errno));
}

static void
answer_slow(void)
{
	struct conn *c;
	uint64_t t = now();

	while ((c = slow_first) != NULL && c->due <= t) {
		slow_first = c->next_slow;
		if (slow_first == NULL)
			slow_last = &slow_first;
		c->in_slow = false;
		if (c->fd >= 0)
			conn_answer(c);
		else
			conn_free(c);
	}
}

static void
loop(int *http, int *fcgi)
{
	struct epoll_event ev[256];
	struct conn *c;
	int i, n, fd, *listener;

	for (;;) {
		n = epoll_wait(epoll_fd, ev, 256, slow_first != NULL ? 20 : -1);
		for (i = 0; i < n; i++) {
			listener = ev[i].data.ptr;
			if (listener == http || listener == fcgi) {
				while ((fd = accept4(*listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
					conn_new(fd, listener == fcgi);
				continue;
			}
			c = ev[i].data.ptr;
			if (c->writing && (ev[i].events & EPOLLOUT) && !conn_write(c))
				continue;
			if (ev[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
				conn_read(c);
		}
		answer_slow();
	}
}

int
main(int argc, char **argv)
{
	static const struct option options[] = { { "port", required_argument, NULL, 'p' },
		{ "socket", required_argument, NULL, 's' }, { NULL, 0, NULL, 0 } };
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct rlimit rl;
	int c, http, fcgi;

	while ((c = getopt_long(argc, argv, "p:s:", options, NULL)) != -1) {
		if (c == 'p')
			in.sin_port = htons((uint16_t)number("--port", optarg, 1, 65535));
		else if (c == 's' && strlen(optarg) < sizeof(un.sun_path))
			strcpy(un.sun_path, optarg);
		else
			die("usage", "responder --port PORT --socket PATH");
	}
	if (in.sin_port == 0 || un.sun_path[0] == '\0' || optind != argc)
		die("usage", "responder --port PORT --socket PATH");
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	make_answer(ANSWER_1K, 1024);
	make_answer(ANSWER_1M, 1 << 20);
	make_answer(ANSWER_UPLOAD, 16);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	fcgi = listen_on(&un, sizeof(un));
	http = listen_on(&in, sizeof(in)); /* last: a client that can connect here finds both */
	watch_listener(&http);
	watch_listener(&fcgi);
	loop(&http, &fcgi);
}
