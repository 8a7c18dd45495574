/* floor -- how fast an HTTP server could be on this machine if it did nothing at all.
 *
 *   floor [--port N] DIR
 *
 * One epoll loop that receives and sends answers made at the start: no parsing, no look-up, no
 * date, no log.  The first bytes of the URL choose the answer: /1k /10k /100k /10m are the files
 * DIR/1k.bin and so on, anything else is a 404.  Requests are counted by their empty lines, so
 * sixteen pipelined ones are one receive and one send.  What a real server needs on top of the
 * floor's CPU time is its own doing; the rest is the kernel's.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_MEMORY (16 * 1024) /* up to this size head and body are one send */
#define BATCH     16          /* answers kept side by side for pipelining */

struct answer {
	const char *url; /* the beginning of the request */
	const char *file;
	size_t url_len;
	char *bytes; /* head, or head and body BATCH times */
	size_t len;  /* of one */
	int fd;      /* of a body to be sent by sendfile, or -1 */
	off_t size;
};

static struct answer answers[] = {
	{ .url = "GET /1k", .file = "1k.bin" }, { .url = "GET /10k", .file = "10k.bin" },
	{ .url = "GET /100k", .file = "100k.bin" }, { .url = "GET /10m", .file = "10m.bin" },
	{ .url = "" }, /* the last matches everything: 404 */
};
#define N_ANSWERS (sizeof(answers) / sizeof(answers[0]))

struct conn {
	int fd;
	bool writing; /* waits for room in the socket */
	bool close;   /* after the answers due */
	unsigned due; /* answers not yet begun */
	const struct answer *a;
	const char *mem; /* rest of what is sent from memory */
	size_t mem_left;
	off_t off, file_left;
	size_t kept; /* bytes of an incomplete request */
	char keep[2048];
};

static int ep;

static void
die(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	exit(71);
}

static void
answer_make(struct answer *a, const char *dir)
{
	char path[4096], head[256];
	struct stat st = { .st_size = 10 };
	size_t head_len;
	int i, copies = BATCH;

	a->url_len = strlen(a->url);
	a->fd = -1;
	if (a->file != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, a->file);
		a->fd = open(path, O_RDONLY | O_CLOEXEC);
		if (a->fd < 0 || fstat(a->fd, &st) < 0)
			die(path);
	}
	/* As many header bytes as a usual server sends: they cost too. */
	head_len = (size_t)snprintf(head, sizeof(head),
	    "HTTP/1.1 %s\r\nServer: floor\r\nDate: Mon, 01 Jan 2007 00:00:00 GMT\r\n"
	    "Content-Type: application/octet-stream\r\nETag: \"0123456789\"\r\n"
	    "Content-Length: %lld\r\n\r\n",
	    a->file != NULL ? "200 OK" : "404 Not Found", (long long)st.st_size);
	a->len = head_len;
	if (st.st_size <= IN_MEMORY)
		a->len += (size_t)st.st_size;
	else
		copies = 1;
	if ((a->bytes = calloc((size_t)copies, a->len)) == NULL)
		die("memory");
	for (i = 0; i < copies; i++)
		memcpy(a->bytes + (size_t)i * a->len, head, head_len);
	if (a->len > head_len && a->fd >= 0) {
		for (i = 0; i < copies; i++)
			if (pread(a->fd, a->bytes + (size_t)i * a->len + head_len,
				(size_t)st.st_size, 0) != st.st_size)
				die(path);
		close(a->fd);
		a->fd = -1;
	}
	if (a->file == NULL)
		for (i = 0; i < copies; i++)
			memcpy(a->bytes + (size_t)i * a->len + head_len, "not found\n", 10);
	a->size = a->fd >= 0 ? st.st_size : 0;
}

static void
conn_end(struct conn *c)
{
	close(c->fd);
	free(c);
}

static void
conn_watch(struct conn *c, bool writing)
{
	struct epoll_event ev = { .events = writing ? EPOLLOUT : EPOLLIN, .data.ptr = c };

	if (c->writing == writing)
		return;
	c->writing = writing;
	epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev);
}

static void
conn_begin(struct conn *c)
{
	unsigned n = 1;

	if (c->a->fd < 0)
		n = c->due < BATCH ? c->due : BATCH;
	c->due -= n;
	c->mem = c->a->bytes;
	c->mem_left = n * c->a->len;
	c->off = 0;
	c->file_left = c->a->size;
}

/* Sends what is due: 1 when all is sent, 0 when the socket is full, -1 when it is gone. */
static int
conn_send(struct conn *c)
{
	ssize_t n;

	for (;;) {
		if (c->mem_left > 0) {
			n = send(c->fd, c->mem, c->mem_left,
			    MSG_NOSIGNAL | (c->file_left > 0 ? MSG_MORE : 0));
			if (n < 0)
				return (errno == EAGAIN ? 0 : -1);
			c->mem += n;
			c->mem_left -= (size_t)n;
		} else if (c->file_left > 0) {
			n = sendfile(c->fd, c->a->fd, &c->off, (size_t)c->file_left);
			if (n <= 0)
				return (n < 0 && errno == EAGAIN ? 0 : -1);
			c->file_left -= n;
		} else if (c->due > 0)
			conn_begin(c);
		else
			return (1);
	}
}

/* Counts the requests in buf and picks the answer by the first; returns the bytes used. */
static size_t
conn_parse(struct conn *c, const char *buf, size_t len)
{
	const char *p = buf, *end = buf + len, *nl;
	unsigned i;

	while ((nl = memmem(p, (size_t)(end - p), "\r\n\r\n", 4)) != NULL) {
		if (c->due++ == 0) {
			for (i = 0; i < N_ANSWERS - 1; i++)
				if (len > answers[i].url_len &&
				    memcmp(p, answers[i].url, answers[i].url_len) == 0)
					break;
			c->a = &answers[i];
		}
		if (nl - p > 5 && memcmp(nl - 5, "close", 5) == 0)
			c->close = true;
		p = nl + 4;
	}
	return ((size_t)(p - buf));
}

static void
conn_run(struct conn *c)
{
	static char buf[64 * 1024];
	ssize_t n;
	size_t used, len;
	int r = 1;

	if (!c->writing) {
		memcpy(buf, c->keep, c->kept);
		n = recv(c->fd, buf + c->kept, sizeof(buf) - c->kept, 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			conn_end(c);
			return;
		}
		len = c->kept + (size_t)n;
		used = conn_parse(c, buf, len);
		c->kept = len - used;
		if (c->kept > sizeof(c->keep)) {
			conn_end(c);
			return;
		}
		memcpy(c->keep, buf + used, c->kept);
	}
	r = conn_send(c);
	if (r < 0 || (r > 0 && c->close))
		conn_end(c);
	else
		conn_watch(c, r == 0);
}

static void
accept_all(int lfd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct conn *c;
	int fd, one = 1;

	while ((fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if ((c = calloc(1, sizeof(*c))) == NULL)
			die("memory");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c->fd = fd;
		ev.data.ptr = c;
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	}
}

static int
listen_on(int port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);
	int fd, one = 1;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 8192) < 0)
		die("listen");
	getsockname(fd, (struct sockaddr *)&sa, &len);
	printf("%d\n", ntohs(sa.sin_port));
	fflush(stdout);
	return (fd);
}

static void
usage(FILE *to)
{
	fputs("usage: floor [--port N] DIR\n"
	      "Answers /1k /10k /100k /10m with DIR/1k.bin ... on 127.0.0.1 without reading the "
	      "request.\n"
	      "Port 0, the default, takes a free one; the port is printed.\n",
	    to);
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "port", 1, NULL, 'p' },
		{ "help", 0, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct epoll_event evs[256], ev = { .events = EPOLLIN };
	int c, i, n, lfd, port = 0;

	while ((c = getopt_long(argc, argv, "p:h", longs, NULL)) != -1) {
		switch (c) {
		case 'p': port = atoi(optarg); break;
		case 'h': usage(stdout); return (0);
		default: usage(stderr); return (64);
		}
	}
	if (argc - optind != 1) {
		usage(stderr);
		return (64);
	}
	signal(SIGPIPE, SIG_IGN); /* sendfile has no MSG_NOSIGNAL */
	for (i = 0; i < (int)N_ANSWERS; i++)
		answer_make(&answers[i], argv[optind]);
	lfd = listen_on(port);
	ep = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(ep, EPOLL_CTL_ADD, lfd, &ev); /* data.ptr NULL: the listener */
	for (;;) {
		n = epoll_wait(ep, evs, 256, -1);
		for (i = 0; i < n; i++) {
			if (evs[i].data.ptr == NULL)
				accept_all(lfd);
			else
				conn_run(evs[i].data.ptr);
		}
	}
}
