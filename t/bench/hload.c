/* hload -- asks an HTTP/1.1 server on this machine for files, and tells apart what went wrong.
 *
 *   hload [options] http://127.0.0.1:PORT/PATH          `hload --help` lists them
 *
 * Closed loop (the default): each connection asks again as soon as it has its answer.  Finds out how
 * much a server can do.  Open loop (--rate): requests start by the clock, whether or not the answers
 * come; latency counts from the scheduled start, and what is still unanswered at the end counts with
 * its age.  Finds out what users of a slow server see; a closed loop would just ask less often.
 *
 * One thread, one epoll.  A connection goes through these states:
 *
 *     idle --> (connecting) --> asked: head --> body --> idle     keep-alive
 *       ^                                         `--> ending     close: waits for the server's FIN,
 *       `--------------------------------------------------'      so TIME_WAIT is not on our side
 *
 * Bodies are dropped in the kernel by recv(MSG_TRUNC), never more than the answer is known to hold;
 * with --check they are compared with a file instead.  Only loopback addresses, always an end in
 * time: this is for benchmarks and tests, not for others' servers.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PIPELINE_MAX	64
#define HEAD_MAX	16384
#define NS		1000000000ull
#define RETRY_NS	(10 * NS / 1000)	/* after a failed connect: no busy loop */
#define SWEEP_NS	(20 * NS / 1000)	/* how often time-outs are looked for */
#define HOLD_AT_ONCE	256
#define NEVER		UINT64_MAX

/* ---------------------------------------------------------------- what is asked and counted */

struct url {
	char *path;
	char *request;
	size_t request_len;
	const char *expect;		/* --check: the file's bytes */
	size_t expect_len;
};

static struct {
	unsigned conns;
	unsigned pipeline;
	uint64_t requests;		/* at most; 0 for no limit but the time */
	double seconds, timeout, rate;
	bool close, json, random, hold;
	int status;			/* the status that is no error; 0 for any 2xx */
	double abort_pct;
	uint64_t seed;
	const char *list, *check, *method;
	char headers[4096];
	struct sockaddr_in addr, from;	/* from: the source address, if its family is set */
	char host[64];
} opt = { .conns = 1, .pipeline = 1, .timeout = 10, .seed = 1, .method = "GET" };

static struct url *urls;
static size_t n_urls;

static struct {
	uint64_t issued, answered, unanswered, aborted, bytes;
	uint64_t connect, timeout, reset, cut, status, malformed, wrong;
	uint64_t connects;
} cnt;

/* Latencies in microseconds: exact below 256, then 128 steps per doubling (0.8 %). */
#define HIST_SUB	128
static uint64_t hist[HIST_SUB * 40];
static uint64_t hist_n, hist_max, hist_sum;

static uint64_t started, ends, clock_ns;
static int ep;

static uint64_t
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec);
}

static unsigned
hist_slot(uint64_t us)
{
	unsigned shift;

	if (us < 2 * HIST_SUB)
		return ((unsigned)us);
	shift = 63 - (unsigned)__builtin_clzll(us) - 7;
	return (shift * HIST_SUB + (unsigned)(us >> shift));
}

static uint64_t
hist_value(unsigned slot)
{
	unsigned shift;

	if (slot < 2 * HIST_SUB)
		return (slot);
	shift = slot / HIST_SUB - 1;
	return ((((uint64_t)slot - shift * HIST_SUB) << shift) + ((1ull << shift) >> 1));
}

static void
hist_add(uint64_t ns)
{
	uint64_t us = (ns + 500) / 1000;
	unsigned slot = hist_slot(us);

	if (slot >= sizeof(hist) / sizeof(hist[0]))
		slot = sizeof(hist) / sizeof(hist[0]) - 1;
	hist[slot]++;
	hist_n++;
	hist_sum += us;
	if (us > hist_max)
		hist_max = us;
}

static uint64_t
hist_quantile(double q)
{
	uint64_t want = (uint64_t)ceil(q * (double)hist_n), seen = 0;
	unsigned i;

	for (i = 0; i < sizeof(hist) / sizeof(hist[0]); i++) {
		seen += hist[i];
		if (seen >= want && seen > 0)
			return (hist_value(i) < hist_max ? hist_value(i) : hist_max);
	}
	return (hist_max);
}

static uint64_t
random_u64(void)
{
	opt.seed += 0x9e3779b97f4a7c15ull;	/* splitmix64: the same run after run */
	uint64_t z = opt.seed;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31));
}

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "hload: %s: %s\n", what, why);
	exit(64);
}

/* ---------------------------------------------------------------- connections */

struct asked {
	const struct url *url;
	uint64_t at;			/* when it was sent, or should have been */
};

struct conn {
	struct conn *next;		/* in the list of idle ones */
	int fd;				/* -1: not connected */
	uint32_t events;
	bool connecting, ending, listed;
	uint64_t retry_at;		/* not before */
	uint64_t end_by;		/* ending: the server's FIN is awaited until then */
	struct asked asked[PIPELINE_MAX];
	unsigned first, n;		/* asked and not yet answered */
	unsigned unsent, sent_bytes;	/* of those, the last ones; bytes of the first unsent */

	/* the answer being read */
	enum { HEAD, BODY, CHUNK_LINE, CHUNK_END, TRAILER } part;
	bool last, until_eof, chunked, begun;
	bool status_ok, bytes_ok;
	uint64_t left, got;		/* body bytes to come (of the chunk), and seen */
	uint64_t abort_at;		/* leaves when this many are seen */
	size_t have;			/* bytes in `buf`, all of them before `part` is done */
	char *buf;			/* an unfinished head or line */
};

static struct conn *conns;
static struct conn *idle_head, **idle_tail = &idle_head;
static uint64_t scheduled;		/* open loop: requests begun so far */

static void conn_ask(struct conn *, uint64_t at);

static uint64_t
schedule_of(uint64_t i)
{
	return (started + (uint64_t)((double)i * 1e9 / opt.rate));
}

static bool
may_issue(void)
{
	return (clock_ns < ends && (opt.requests == 0 || cnt.issued < opt.requests));
}

static void
idle_add(struct conn *c)
{
	if (c->listed)
		return;
	c->listed = true;
	c->next = NULL;
	*idle_tail = c;			/* oldest first: every connection gets its turn */
	idle_tail = &c->next;
}

static struct conn *
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
	epoll_ctl(ep, c->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c->fd, &ev);
	c->events = events;
}

static void
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

/* Nothing more to wait for here: ask again, or hand the connection to whoever asks next. */
static void
conn_next(struct conn *c)
{
	if (opt.rate > 0 || opt.hold)
		idle_add(c);
	else if (c->retry_at <= clock_ns && may_issue())
		conn_ask(c, clock_ns);
}

/* Ends a connection; what was asked and not answered counts as the given kind of error. */
static void
conn_fail(struct conn *c, uint64_t *kind)
{
	unsigned i;

	*kind += c->n > 0 ? c->n : 1;
	/* In the open loop nobody gets lost: a failed request is as slow as it was in vain. */
	for (i = 0; opt.rate > 0 && i < c->n; i++)
		hist_add(now() - c->asked[(c->first + i) % PIPELINE_MAX].at);
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
	static char out[PIPELINE_MAX * 2048];
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

static const struct url *
url_pick(void)
{
	static size_t turn;

	if (n_urls == 1)
		return (&urls[0]);
	return (&urls[opt.random ? random_u64() % n_urls : turn++ % n_urls]);
}

static void
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
		c->asked[i] = (struct asked){ .url = url_pick(), .at = at };
	if (c->fd < 0 && conn_connect(c) < 0) {
		conn_fail(c, &cnt.connect);
		return;
	}
	conn_send(c);
}

/* ---------------------------------------------------------------- answers */

/* The value of a header field in a head that ends in an empty line, or NULL. */
static const char *
field(const char *head, const char *name)
{
	const char *p = head;
	size_t len = strlen(name);

	while ((p = strchr(p, '\n')) != NULL) {
		p++;
		if (strncasecmp(p, name, len) == 0 && p[len] == ':') {
			p += len + 1;
			return (p + strspn(p, " \t"));
		}
	}
	return (NULL);
}

static bool
has_word(const char *value, const char *word)
{
	const char *end, *p;

	if (value == NULL)
		return (false);
	end = value + strcspn(value, "\r\n");
	for (p = value; p + strlen(word) <= end; p++)
		if (strncasecmp(p, word, strlen(word)) == 0)
			return (true);
	return (false);
}

/* Reads a whole head, ended by a NUL; false when it is none. */
static bool
head_read(struct conn *c, const char *head)
{
	const char *v;
	int status;

	if (strncmp(head, "HTTP/1.", 7) != 0 || head[8] != ' ')
		return (false);
	status = atoi(head + 9);
	if (status < 100 || status > 599)
		return (false);
	if (status < 200)
		return (true);			/* the real one follows */
	c->begun = true;
	c->got = 0;
	c->abort_at = NEVER;
	c->status_ok = opt.status != 0 ? status == opt.status : status / 100 == 2;
	c->bytes_ok = true;
	c->last = opt.close || has_word(field(head, "Connection"), "close") ||
	    (head[7] == '0' && !has_word(field(head, "Connection"), "keep-alive"));
	c->chunked = has_word(field(head, "Transfer-Encoding"), "chunked");
	c->until_eof = false;
	c->left = 0;
	c->part = BODY;
	if (strcmp(opt.method, "HEAD") == 0 || status == 204 || status == 304)
		c->chunked = false;
	else if (c->chunked)
		c->part = CHUNK_LINE;
	else if ((v = field(head, "Content-Length")) != NULL)
		c->left = strtoull(v, NULL, 10);
	else {
		c->until_eof = c->last = true;
		c->left = UINT64_MAX;
	}
	if (opt.abort_pct > 0 && (double)(random_u64() % 10000) < opt.abort_pct * 100)
		c->abort_at = c->left == 0 ? 0 : random_u64() % (c->left < (1 << 30) ? c->left : 4096);
	return (true);
}

static void
check_bytes(struct conn *c, const char *p, size_t n)
{
	const struct url *u = c->asked[c->first].url;

	if (u->expect == NULL || !c->status_ok || !c->bytes_ok)
		return;
	if (c->got + n <= u->expect_len && memcmp(u->expect + c->got, p, n) == 0)
		return;
	c->bytes_ok = false;
	fprintf(stderr, "hload: %s: wrong bytes between %llu and %llu\n", u->path,
	    (unsigned long long)c->got, (unsigned long long)(c->got + n));
}

/* One answer is complete. */
static void
answer_done(struct conn *c)
{
	const struct asked *a = &c->asked[c->first];

	if (!c->status_ok)
		cnt.status++;
	else if (!c->bytes_ok || (a->url->expect != NULL && c->got != a->url->expect_len))
		cnt.wrong++;
	cnt.answered++;
	hist_add(now() - a->at);
	c->first = (c->first + 1) % PIPELINE_MAX;
	c->n--;
	c->part = HEAD;
	c->begun = false;
}

/* Takes body bytes; the number used. */
static size_t
body_take(struct conn *c, const char *p, size_t n)
{
	if (n > c->left)
		n = (size_t)c->left;
	if (p != NULL && opt.check != NULL)
		check_bytes(c, p, n);
	c->left -= n;
	c->got += n;
	cnt.bytes += n;
	return (n);
}

/* Ends what came by lines: a head, a chunk's length, a trailer.  False when it makes no sense. */
static bool
line_done(struct conn *c, char *line)
{
	char *end;

	switch (c->part) {
	case HEAD:
		return (head_read(c, line));
	case CHUNK_LINE:
		c->left = strtoull(line, &end, 16);
		c->part = c->left > 0 ? BODY : TRAILER;
		return (end != line);
	case CHUNK_END:
		c->part = CHUNK_LINE;
		return (true);
	case TRAILER:
		if (line[0] == '\r' || line[0] == '\n')
			answer_done(c);
		return (true);
	default:
		return (false);
	}
}

/* Moves bytes into c->buf until a head or line is whole; the number used, or -1. */
static ssize_t
line_take(struct conn *c, const char *p, size_t n)
{
	const char *mark = c->part == HEAD ? "\r\n\r\n" : "\n", *found;
	size_t mark_len = strlen(mark), from, take;

	take = n < HEAD_MAX - c->have ? n : HEAD_MAX - c->have;
	memcpy(c->buf + c->have, p, take);
	from = c->have < mark_len ? 0 : c->have - mark_len + 1;
	found = memmem(c->buf + from, c->have + take - from, mark, mark_len);
	if (found == NULL) {
		c->have += take;
		return (c->have < HEAD_MAX ? (ssize_t)take : -1);
	}
	take = (size_t)(found - c->buf) + mark_len - c->have;
	c->buf[c->have + take] = '\0';
	c->have = 0;
	return (line_done(c, c->buf) ? (ssize_t)take : -1);
}

/* The usual case without a copy: a whole head within the bytes just received. */
static ssize_t
head_take(struct conn *c, char *p, size_t n)
{
	char *found, kept;
	ssize_t used;

	if (c->part != HEAD || c->have > 0 || (found = memmem(p, n, "\r\n\r\n", 4)) == NULL)
		return (line_take(c, p, n));
	found += 4;
	used = found - p;
	kept = *found;				/* the buffer has room for one byte more */
	*found = '\0';
	if (!head_read(c, p))
		used = -1;
	*found = kept;
	return (used);
}

/* Works through received bytes; false when the connection is gone. */
static bool
conn_take(struct conn *c, char *p, size_t n)
{
	ssize_t used;

	for (;;) {
		if (c->part == BODY && c->got >= c->abort_at) {
			cnt.aborted += c->n;
			conn_close(c);
			conn_next(c);
			return (false);
		}
		if (c->part == BODY && c->left == 0) {
			if (!c->chunked)
				answer_done(c);
			else
				c->part = CHUNK_END;
		}
		if (n == 0)
			return (true);
		if (c->n == 0)
			break;			/* nobody asked for these */
		used = c->part == BODY ? (ssize_t)body_take(c, p, n) : head_take(c, p, n);
		if (used < 0)
			break;
		p += used;
		n -= (size_t)used;
	}
	conn_fail(c, &cnt.malformed);
	return (false);
}

/* The server closed. */
static void
conn_eof(struct conn *c)
{
	if (c->part == BODY && c->until_eof)
		answer_done(c);
	if (c->ending || c->n == 0) {
		conn_close(c);			/* as announced, or idle for too long */
		conn_next(c);
	} else if (c->begun || c->have > 0)
		conn_fail(c, &cnt.cut);
	else
		conn_fail(c, &cnt.reset);
}

/* After each read: is a round complete? */
static void
conn_settle(struct conn *c)
{
	if (c->begun || c->have > 0)
		return;
	if (c->last && c->part == HEAD && c->n < opt.pipeline) {
		if (!opt.close && c->n > 0) {
			cnt.issued -= c->n;	/* announced and not answered: asked anew */
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
	/* Small enough that of a long body little is copied before the kernel drops the rest. */
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
		if (conn_take(c, buf, 0))
			conn_settle(c);
	} else if (conn_take(c, buf, (size_t)n))
		conn_settle(c);
}

static void
conn_event(struct conn *c, uint32_t events)
{
	int err = 0;
	socklen_t len = sizeof(err);

	if (c->fd < 0)
		return;				/* closed by an earlier event of this batch */
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

/* ---------------------------------------------------------------- the run */

static void
sweep(void)
{
	static uint64_t next;
	uint64_t limit = (uint64_t)(opt.timeout * 1e9);
	struct conn *c;
	unsigned i;

	if (clock_ns < next)
		return;
	next = clock_ns + SWEEP_NS;
	for (i = 0; i < opt.conns; i++) {
		c = &conns[i];
		if (c->n > 0 && clock_ns > c->asked[c->first].at && clock_ns - c->asked[c->first].at > limit)
			conn_fail(c, &cnt.timeout);
		else if (c->ending && clock_ns > c->end_by)
			conn_fail(c, &cnt.timeout);	/* said it would close, and does not */
	}
}

/* Requests that came to some end. */
static uint64_t
over(void)
{
	return (cnt.answered + cnt.aborted + cnt.timeout + cnt.reset + cnt.cut + cnt.malformed + cnt.connect);
}

/* Starts what is due; returns when to be called again. */
static uint64_t
dispatch(void)
{
	struct conn *c, *stop = NULL;
	uint64_t at;

	for (;;) {
		if (!may_issue())
			return (NEVER);
		at = opt.rate > 0 ? schedule_of(scheduled) : clock_ns;
		if (at > clock_ns || idle_head == NULL)
			return (idle_head == NULL ? NEVER : at);
		if (opt.hold && cnt.issued > over() + HOLD_AT_ONCE)
			return (NEVER);		/* no listen queue is that long */
		c = idle_take();
		if (c->retry_at > clock_ns) {
			idle_add(c);
			if (c == stop)
				return (clock_ns + RETRY_NS);
			stop = stop == NULL ? c : stop;
			continue;
		}
		if (c->fd >= 0 && (c->ending || c->n > 0))
			continue;		/* busy again; it will come back */
		if (opt.hold && cnt.issued >= opt.conns)
			return (NEVER);
		scheduled++;
		conn_ask(c, at);
	}
}

static bool
finished(void)
{
	if (clock_ns >= ends)
		return (true);
	if (opt.hold)
		return (over() >= opt.conns);
	return (opt.requests != 0 && cnt.issued >= opt.requests && over() >= opt.requests);
}

static void
run(void)
{
	struct epoll_event evs[256];
	struct timespec ts;
	uint64_t wake, left;
	int i, n;

	while (clock_ns = now(), !finished()) {
		sweep();
		wake = dispatch();
		if (wake > clock_ns + SWEEP_NS)
			wake = clock_ns + SWEEP_NS;
		left = wake > clock_ns ? wake - clock_ns : 0;
		ts.tv_sec = (time_t)(left / NS);
		ts.tv_nsec = (long)(left % NS);
		n = epoll_pwait2(ep, evs, 256, &ts, NULL);
		clock_ns = now();
		for (i = 0; i < n; i++)
			conn_event(evs[i].data.ptr, evs[i].events);
	}
}

/* Open loop: what is under way or has not even begun has waited so far, and counts. */
static void
count_unanswered(void)
{
	uint64_t t = now(), at;
	unsigned i, k;

	for (i = 0; i < opt.conns; i++) {
		for (k = 0; k < conns[i].n; k++) {
			hist_add(t - conns[i].asked[(conns[i].first + k) % PIPELINE_MAX].at);
			cnt.unanswered++;
		}
	}
	for (; (opt.requests == 0 || scheduled < opt.requests) && (at = schedule_of(scheduled)) < ends; scheduled++) {
		hist_add(t - at);
		cnt.unanswered++;
	}
}

/* Keeps the connections open and silent until standard input ends or the time is over. */
static void
hold(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	char buf[64];
	unsigned i, open_now = 0;

	for (i = 0; i < opt.conns; i++)
		open_now += conns[i].fd >= 0;
	printf("held %u answered %llu\n", open_now, (unsigned long long)cnt.answered);
	fflush(stdout);
	while ((clock_ns = now()) < ends)
		if (poll(&p, 1, (int)((ends - clock_ns) / 1000000) + 1) > 0 &&
		    read(STDIN_FILENO, buf, sizeof(buf)) <= 0)
			return;
}

static uint64_t
errors(void)
{
	return (cnt.connect + cnt.timeout + cnt.reset + cnt.cut + cnt.status + cnt.malformed + cnt.wrong);
}

#define U(x)	((unsigned long long)(x))

static void
report(double seconds)
{
	static const struct { const char *json, *text; double q; } qs[] = {
		{ "p50", "p50", .5 }, { "p90", "p90", .9 }, { "p99", "p99", .99 }, { "p999", "p99.9", .999 },
	};
	double rps = (double)cnt.answered / seconds, mbs = (double)cnt.bytes / seconds / 1e6;
	size_t i;

	if (opt.json) {
		printf("{\"requests\":%llu,\"answered\":%llu,\"unanswered\":%llu,\"aborted\":%llu,"
		    "\"errors\":{\"all\":%llu,\"connect\":%llu,\"timeout\":%llu,\"reset\":%llu,\"short\":%llu,"
		    "\"status\":%llu,\"malformed\":%llu,\"wrong\":%llu},\"connects\":%llu,\"bytes\":%llu,"
		    "\"seconds\":%.3f,\"rps\":%.1f,\"mb_per_s\":%.3f,\"latency_us\":{",
		    U(cnt.issued), U(cnt.answered), U(cnt.unanswered), U(cnt.aborted), U(errors()),
		    U(cnt.connect), U(cnt.timeout), U(cnt.reset), U(cnt.cut), U(cnt.status), U(cnt.malformed),
		    U(cnt.wrong), U(cnt.connects), U(cnt.bytes), seconds, rps, mbs);
		for (i = 0; i < sizeof(qs) / sizeof(qs[0]); i++)
			printf("\"%s\":%llu,", qs[i].json, U(hist_quantile(qs[i].q)));
		printf("\"max\":%llu,\"mean\":%.1f}}\n", U(hist_max),
		    hist_n > 0 ? (double)hist_sum / (double)hist_n : 0);
		return;
	}
	printf("%llu requests, %llu answered in %.2f s: %.1f req/s, %.2f MB/s, %llu body bytes\n",
	    U(cnt.issued), U(cnt.answered), seconds, rps, mbs, U(cnt.bytes));
	printf("latency ms:");
	for (i = 0; i < sizeof(qs) / sizeof(qs[0]); i++)
		printf(" %s %.3f", qs[i].text, (double)hist_quantile(qs[i].q) / 1000);
	printf(" max %.3f\n", (double)hist_max / 1000);
	printf("errors %llu: connect %llu timeout %llu reset %llu short %llu status %llu malformed %llu "
	    "wrong-bytes %llu; unanswered %llu, aborted %llu\n", U(errors()), U(cnt.connect), U(cnt.timeout),
	    U(cnt.reset), U(cnt.cut), U(cnt.status), U(cnt.malformed), U(cnt.wrong), U(cnt.unanswered),
	    U(cnt.aborted));
}

/* ---------------------------------------------------------------- options */

static void
usage(FILE *to)
{
	fputs("usage: hload [options] http://127.0.0.1:PORT/PATH\n"
	    "  -c, --connections N  (1)\n"
	    "  -d, --seconds S      at most this long (5; with -n 60), never over 3600\n"
	    "  -n, --requests N     at most this many\n"
	    "  -r, --rate R         open loop: R requests per second in all, by the clock\n"
	    "  -p, --pipeline N     N requests in one send, then N answers (1, at most 64)\n"
	    "      --close          a connection for each request\n"
	    "  -u, --urls FILE      paths or URLs, one a line, instead of PATH; in turn\n"
	    "      --random         ... at random; --seed N for another order\n"
	    "  -t, --timeout S      for one request (10)\n"
	    "  -H, --header LINE    added to each request; may be repeated\n"
	    "      --from ADDRESS   source address, 127.x.x.x\n"
	    "      --head           HEAD instead of GET\n"
	    "      --status N       the status expected; else any 2xx\n"
	    "      --check DIR      compares each body with the file DIR/PATH\n"
	    "      --abort PCT      this share of requests is left in the middle of the body\n"
	    "      --hold           one request on each connection, prints `held N`, then keeps them\n"
	    "                       open and silent until standard input ends or -d is over\n"
	    "      --json           the report as one JSON object\n"
	    "Exit status 0 without errors, 1 with errors, 64 for wrong options.\n", to);
}

static double
number(const char *what, const char *s, double lo, double hi)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end != '\0' || !(v >= lo && v <= hi))
		die(what, "not a number in its range");
	return (v);
}

/* Takes http://ADDRESS:PORT/PATH apart; returns PATH. */
static const char *
target(const char *url)
{
	char host[32];
	int port, used = 0;

	if (sscanf(url, "http://%31[0-9.]:%d%n", host, &port, &used) != 2 || port < 1 || port > 65535 ||
	    inet_pton(AF_INET, host, &opt.addr.sin_addr) != 1)
		die(url, "not of the form http://127.0.0.1:PORT/PATH");
	if (ntohl(opt.addr.sin_addr.s_addr) >> 24 != 127)
		die(url, "only addresses of this machine, 127.x.x.x");
	opt.addr.sin_family = AF_INET;
	opt.addr.sin_port = htons((uint16_t)port);
	snprintf(opt.host, sizeof(opt.host), "%s:%d", host, port);
	return (url[used] == '/' ? url + used : "/");
}

static void
url_expect(struct url *u)
{
	char path[4096];
	struct stat st;
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s%s", opt.check, u->path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		die(path, strerror(errno));
	u->expect = "";
	u->expect_len = (size_t)st.st_size;
	if (st.st_size > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			die(path, strerror(errno));
		u->expect = map;
	}
	close(fd);
}

static void
url_add(const char *path)
{
	static size_t room;
	struct url *u;
	int len;

	if (n_urls == room) {
		room = room == 0 ? 64 : 2 * room;
		if ((urls = realloc(urls, room * sizeof(*urls))) == NULL)
			die("memory", strerror(errno));
	}
	u = &urls[n_urls++];
	memset(u, 0, sizeof(*u));
	u->path = strdup(path);
	/* Connection last: the floor program looks for it there. */
	len = asprintf(&u->request, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", opt.method, path, opt.host,
	    opt.headers, opt.close ? "Connection: close\r\n" : "");
	if (u->path == NULL || len < 0)
		die("memory", strerror(errno));
	u->request_len = (size_t)len;
	if (u->request_len > 2048)
		die(path, "the request is over 2048 bytes");
	if (opt.check != NULL && strcmp(opt.method, "GET") == 0)
		url_expect(u);
}

static void
list_read(const char *name)
{
	FILE *f = fopen(name, "r");
	char line[4096], *p;

	if (f == NULL)
		die(name, strerror(errno));
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		p = line;
		if (strncmp(p, "http://", 7) == 0)
			p += 7 + strcspn(p + 7, "/");
		if (*p == '/')
			url_add(p);
	}
	fclose(f);
	if (n_urls == 0)
		die(name, "no URL in it");
}

static void
options(int argc, char **argv)
{
	enum { CLOSE = 256, RANDOM, SEED, HEADM, STATUS, CHECK, ABORT, HOLD, JSON, FROM };
	static const struct option longs[] = {
		{ "connections", 1, NULL, 'c' }, { "seconds", 1, NULL, 'd' }, { "requests", 1, NULL, 'n' },
		{ "rate", 1, NULL, 'r' }, { "pipeline", 1, NULL, 'p' }, { "close", 0, NULL, CLOSE },
		{ "urls", 1, NULL, 'u' }, { "random", 0, NULL, RANDOM }, { "seed", 1, NULL, SEED },
		{ "timeout", 1, NULL, 't' }, { "header", 1, NULL, 'H' }, { "head", 0, NULL, HEADM },
		{ "status", 1, NULL, STATUS }, { "check", 1, NULL, CHECK }, { "abort", 1, NULL, ABORT },
		{ "hold", 0, NULL, HOLD }, { "json", 0, NULL, JSON }, { "from", 1, NULL, FROM }, { "help", 0, NULL, 'h' },
		{ "version", 0, NULL, 'V' }, { NULL, 0, NULL, 0 },
	};
	size_t used;
	int c;

	while ((c = getopt_long(argc, argv, "c:d:n:r:p:u:t:H:hV", longs, NULL)) != -1) {
		switch (c) {
		case 'c': opt.conns = (unsigned)number("-c", optarg, 1, 19000); break;
		case 'd': opt.seconds = number("-d", optarg, 0.01, 3600); break;
		case 'n': opt.requests = (uint64_t)number("-n", optarg, 1, 1e12); break;
		case 'r': opt.rate = number("--rate", optarg, 0.001, 1e6); break;
		case 'p': opt.pipeline = (unsigned)number("--pipeline", optarg, 1, PIPELINE_MAX); break;
		case 'u': opt.list = optarg; break;
		case 't': opt.timeout = number("-t", optarg, 0.001, 3600); break;
		case 'H':
			used = strlen(opt.headers);
			snprintf(opt.headers + used, sizeof(opt.headers) - used, "%s\r\n", optarg);
			break;
		case CLOSE: opt.close = true; break;
		case RANDOM: opt.random = true; break;
		case SEED: opt.seed = (uint64_t)number("--seed", optarg, 0, 1e15); break;
		case HEADM: opt.method = "HEAD"; break;
		case STATUS: opt.status = (int)number("--status", optarg, 100, 599); break;
		case CHECK: opt.check = optarg; break;
		case ABORT: opt.abort_pct = number("--abort", optarg, 0, 100); break;
		case HOLD: opt.hold = true; break;
		case JSON: opt.json = true; break;
		case FROM:
			opt.from.sin_family = AF_INET;
			if (inet_pton(AF_INET, optarg, &opt.from.sin_addr) != 1)
				die("--from", "not an address");
			break;
		case 'h': usage(stdout); exit(0);
		case 'V': puts("hload " STAT_ACCEL_VERSION); exit(0);
		default: usage(stderr); exit(64);
		}
	}
	if (argc - optind != 1) {
		usage(stderr);
		exit(64);
	}
	if (opt.seconds <= 0)
		opt.seconds = opt.requests > 0 || opt.hold ? 60 : 5;
	if ((opt.close || opt.rate > 0 || opt.hold) && opt.pipeline > 1)
		die("--pipeline", "only for the closed loop with keep-alive");
}

int
main(int argc, char **argv)
{
	struct rlimit rl;
	const char *path;
	unsigned i;
	double seconds;

	options(argc, argv);
	path = target(argv[optind]);
	if (opt.list != NULL)
		list_read(opt.list);
	else
		url_add(path);
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	prctl(PR_SET_TIMERSLACK, 1);		/* the open loop starts requests by the clock */
	ep = epoll_create1(EPOLL_CLOEXEC);
	conns = calloc(opt.conns, sizeof(*conns));
	if (ep < 0 || conns == NULL)
		die("start", strerror(errno));
	started = clock_ns = now();
	ends = started + (uint64_t)(opt.seconds * 1e9);
	for (i = 0; i < opt.conns; i++) {
		conns[i].fd = -1;
		if ((conns[i].buf = malloc(HEAD_MAX + 1)) == NULL)
			die("memory", strerror(errno));
		idle_add(&conns[i]);
	}
	run();
	seconds = (double)(now() - started) / 1e9;
	if (opt.rate > 0)
		count_unanswered();
	if (opt.hold)
		hold();
	report(seconds);
	return (errors() > 0);
}
