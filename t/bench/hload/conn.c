/* t/bench/hload/conn.c -- connections: connect, send, receive, close, and the queue of idle
 * ones. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "t/bench/hload/hload.h"

struct conn *conns;
int epoll_fd;

static struct conn *idle_head, **idle_tail = &idle_head;

void
conns_open(void)
{
	unsigned i;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	conns = calloc(opt.conns, sizeof(*conns));
	if (epoll_fd < 0 || conns == NULL)
		die("start", strerror(errno));
	for (i = 0; i < opt.conns; i++) {
		conns[i].fd = -1;
		if ((conns[i].buf = malloc(HEAD_MAX + 1)) == NULL)
			die("memory", strerror(errno));
		idle_add(&conns[i]);
	}
}

void
idle_add(struct conn *c)
{
	if (c->listed)
		return;
	c->listed = true;
	c->next = NULL;
	*idle_tail = c; /* oldest first: every connection gets its turn */
	idle_tail = &c->next;
}

bool
idle_is_empty(void)
{
	return (idle_head == NULL);
}

struct conn *
idle_take(void)
{
	struct conn *c = idle_head;

	if (c == NULL)
		return (NULL);
	idle_head = c->next;
	if (idle_head == NULL)
		idle_tail = &idle_head;
	c->listed = false;
	return (c);
}

static void
conn_watch(struct conn *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	if (c->events == events)
		return;
	epoll_ctl(epoll_fd, c->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c->fd, &ev);
	c->events = events;
}

void
conn_close(struct conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->events = 0;
	c->connecting = c->ending = c->begun = false;
	c->n = c->unsent = c->sent_bytes = 0;
	c->part = HEAD;
	c->have = 0;
}

void
conn_next(struct conn *c)
{
	if (opt.rate > 0 || opt.hold)
		idle_add(c);
	else if (c->retry_at <= clock_ns && may_issue())
		conn_ask(c, clock_ns);
}

void
conn_fail(struct conn *c, uint64_t *kind)
{
	unsigned i;

	*kind += c->n > 0 ? c->n : 1;
	/* Open loop: a failed request counts with its age. */
	for (i = 0; opt.rate > 0 && i < c->n; i++)
		latency_add(now() - c->asked[(c->first + i) % PIPELINE_MAX].at);
	conn_close(c);
	c->retry_at = clock_ns + RETRY_NS;
	idle_add(c);
}

static int
conn_connect(struct conn *c)
{
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return (-errno);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	cnt.connects++;
	if (opt.from.sin_family != 0) {
		setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		if (bind(c->fd, (struct sockaddr *)&opt.from, sizeof(opt.from)) < 0)
			return (-errno);
	}
	if (connect(c->fd, (struct sockaddr *)&opt.addr, sizeof(opt.addr)) < 0) {
		if (errno != EINPROGRESS)
			return (-errno);
		c->connecting = true;
	}
	return (0);
}

static void
conn_send(struct conn *c)
{
	static char out[PIPELINE_MAX * REQUEST_MAX];
	const struct url *u;
	size_t len = 0, skip = c->sent_bytes;
	unsigned i;
	ssize_t n;

	for (i = c->n - c->unsent; i < c->n; i++) {
		u = c->asked[(c->first + i) % PIPELINE_MAX].url;
		if (len + u->request_len > sizeof(out))
			break;
		memcpy(out + len, u->request, u->request_len);
		len += u->request_len;
	}
	n = send(c->fd, out + skip, len - skip, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN) {
		conn_fail(c, c->connecting ? &cnt.connect : &cnt.reset);
		return;
	}
	if (n > 0) {
		c->connecting = false;
		skip += (size_t)n;
		while (c->unsent > 0) {
			u = c->asked[(c->first + c->n - c->unsent) % PIPELINE_MAX].url;
			if (skip < u->request_len)
				break;
			skip -= u->request_len;
			c->unsent--;
		}
		c->sent_bytes = (unsigned)skip;
	}
	conn_watch(c, EPOLLIN | (c->unsent > 0 ? EPOLLOUT : 0));
}

void
conn_ask(struct conn *c, uint64_t at)
{
	unsigned i, n = opt.pipeline;

	if (opt.requests != 0 && opt.requests - cnt.issued < n)
		n = (unsigned)(opt.requests - cnt.issued);
	c->first = 0;
	c->n = c->unsent = n;
	c->sent_bytes = 0;
	cnt.issued += n;
	for (i = 0; i < n; i++)
		c->asked[i] = (struct asked){ .url = url_next(), .at = at };
	if (c->fd < 0 && conn_connect(c) < 0) {
		conn_fail(c, &cnt.connect);
		return;
	}
	conn_send(c);
}

/* The server closed. */
static void
conn_eof(struct conn *c)
{
	if (c->part == BODY && c->until_eof)
		answer_done(c);
	if (c->ending || c->n == 0) {
		conn_close(c); /* announced, or idle for too long */
		conn_next(c);
	} else if (c->begun || c->have > 0)
		conn_fail(c, &cnt.cut);
	else
		conn_fail(c, &cnt.reset);
}

/* Starts the next round if this one is complete. */
static void
conn_settle(struct conn *c)
{
	if (c->begun || c->have > 0)
		return;
	if (c->last && c->part == HEAD && c->n < opt.pipeline) {
		if (!opt.close && c->n > 0) {
			cnt.issued -= c->n; /* not answered: asked again */
			c->n = 0;
		}
		if (c->n == 0) {
			c->last = false;
			c->ending = true;
			c->end_by = clock_ns + (uint64_t)(opt.timeout * 1e9);
		}
		return;
	}
	if (c->n == 0 && !c->ending && !c->listed)
		conn_next(c);
}

static void
conn_readable(struct conn *c)
{
	static char buf[64 * 1024 + 1];
	/* Small: of a long body little is copied before the kernel drops the rest. */
	size_t room = opt.pipeline > 1 || opt.check != NULL ? sizeof(buf) - 1 : 4096;
	bool drop = c->part == BODY && opt.check == NULL && !c->until_eof && c->left > 0 &&
		    c->abort_at == NEVER;
	size_t want = drop ? (c->left < (1 << 30) ? (size_t)c->left : 1 << 30) : room;
	ssize_t n;

	n = recv(c->fd, buf, want, drop ? MSG_TRUNC : 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		conn_fail(c, c->begun ? &cnt.cut : c->connecting ? &cnt.connect : &cnt.reset);
	else if (n == 0)
		conn_eof(c);
	else if (drop) {
		body_take(c, NULL, (size_t)n);
		if (answer_take(c, buf, 0))
			conn_settle(c);
	} else if (answer_take(c, buf, (size_t)n))
		conn_settle(c);
}

void
conn_event(struct conn *c, uint32_t events)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (c->fd < 0)
		return; /* closed by an earlier event of this batch */
	if (c->connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
		if (err != 0) {
			conn_fail(c, &cnt.connect);
			return;
		}
	}
	if ((events & EPOLLOUT) != 0 && c->unsent > 0) {
		conn_send(c);
		if (c->fd < 0)
			return;
	}
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
		conn_readable(c);
}
