/* t/bench/hostile/engine.c -- one epoll loop that opens, feeds, reads and breaks the connections of
 * all attacks. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <netinet/tcp.h>
#include "t/bench/hostile/hostile.h"

#define TICK_NS   (2 * NS / 1000) /* between two looks at what is due */
#define SIP_NS    (100 * NS / 1000)
#define SETTLE_NS (300 * NS / 1000) /* after this "running" is printed */

static int ep;
static uint64_t now;
static volatile sig_atomic_t stop;

uint64_t
clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec);
}

uint32_t
dice(uint32_t sides)
{
	static uint64_t state = 0x9e3779b97f4a7c15ull;

	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return ((uint32_t)((state * 0x2545f4914f6cdd1du >> 32) % sides));
}

static void
on_signal(int sig)
{
	stop = 1;
}

static void
watch(struct peer *p, int how)
{
	struct epoll_event ev = { .data.ptr = p };

	ev.events =
	    EPOLLRDHUP | (p->reading ? EPOLLIN : 0) | (p->connecting || p->blocked ? EPOLLOUT : 0);
	epoll_ctl(ep, how, p->fd, &ev);
}

/* Resets the connection, so that none stays in TIME_WAIT. */
static void
peer_end(struct peer *p)
{
	struct linger now_gone = { .l_onoff = 1 };

	setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now_gone, sizeof(now_gone));
	close(p->fd);
	p->fd = -1;
	free(p->rest);
	p->rest = NULL;
	p->run->open--;
}

/* ---------------------------------------------------------------- opening */

static bool
is_deaf(const struct attack *a, unsigned number)
{
	return (a->deaf || (a->half_deaf && number % 2));
}

static int
peer_socket(struct run *r)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	int one = 1, small = 4096, fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return (-1);
	if (r->attack->sip > 0 || is_deaf(r->attack, (unsigned)r->connections))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	from.sin_addr.s_addr = htonl(ntohl(r->from.s_addr) + r->turn++ % r->nfrom);
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0) {
		close(fd);
		return (-1);
	}
	return (fd);
}

static void
peer_open(struct peer *p)
{
	struct run *r = p->run;

	*p = (struct peer){ .run = r, .fd = peer_socket(r), .number = (unsigned)r->connections++ };
	if (p->fd < 0 || (connect(p->fd, (struct sockaddr *)&opt.addr, sizeof(opt.addr)) < 0 &&
			     errno != EINPROGRESS)) {
		r->failed++;
		if (p->fd >= 0)
			close(p->fd);
		p->fd = -1;
		return;
	}
	r->open++;
	p->connecting = true;
	p->due = p->sip_at = NEVER;
	p->reading = r->attack->sip == 0 && !is_deaf(r->attack, p->number);
	watch(p, EPOLL_CTL_ADD);
}

/* ---------------------------------------------------------------- sending */

/* Sends as much of a piece as the socket takes; the rest is kept until the socket has room. */
static void
peer_send(struct peer *p, const char *piece, size_t len)
{
	ssize_t n = send(p->fd, piece, len, MSG_NOSIGNAL);
	char *rest;

	if (n < 0 && errno != EAGAIN) {
		p->run->broken++;
		peer_end(p);
		return;
	}
	n = n < 0 ? 0 : n;
	p->run->sent += (uint64_t)n;
	rest = (size_t)n < len ? malloc(len - (size_t)n) : NULL;
	if (rest != NULL)
		memcpy(rest, piece + n, len - (size_t)n);
	free(p->rest);
	p->rest = rest;
	p->rest_len = rest != NULL ? len - (size_t)n : 0;
	if (p->blocked != (rest != NULL)) {
		p->blocked = !p->blocked;
		watch(p, EPOLL_CTL_MOD);
	}
}

/* Sends what is due: the next piece, or nothing more. */
static void
peer_next(struct peer *p)
{
	const struct attack *a = p->run->attack;
	static char piece[PIECE_MAX];
	unsigned requests = 0;
	size_t len;

	len = a->next(p, piece, &requests);
	p->step++;
	p->asked += requests;
	p->run->requests += requests;
	if (len == 0) {
		p->last = true;
		p->due = a->reset_ms > 0 ? now + a->reset_ms * (NS / 1000) : NEVER;
		return;
	}
	p->due = a->again ? NEVER : now + p->run->pause_ms * (NS / 1000);
	peer_send(p, piece, len);
}

/* ---------------------------------------------------------------- reading */

/* Counts replies by the first digit of their status; no body that is served holds "HTTP/1.1 ". */
static void
count_answers(struct peer *p, const char *s, size_t n)
{
	static const char mark[] = "HTTP/1.1 ";
	const char *end = s + n;

	while (s < end) {
		if (p->matched == 0 && (s = memchr(s, mark[0], (size_t)(end - s))) == NULL)
			return;
		if (p->matched < sizeof(mark) - 1) {
			p->matched = *s == mark[p->matched] ? p->matched + 1 : *s == mark[0];
		} else {
			p->matched = 0;
			if (*s < '1' || *s > '5')
				continue;
			p->run->answers[*s - '0']++;
			p->answered += *s != '1';
		}
		s++;
	}
}

static void
peer_read(struct peer *p)
{
	static char buf[65536];
	size_t want = p->run->attack->sip > 0 ? p->run->attack->sip : sizeof(buf);
	ssize_t n;

	n = recv(p->fd, buf, want, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		*(n < 0 ? &p->run->broken : &p->run->closed) += 1;
		peer_end(p);
		return;
	}
	p->run->received += (uint64_t)n;
	if (p->run->attack->frames != NULL)
		h2_read(p, (const unsigned char *)buf, (size_t)n);
	else
		count_answers(p, buf, (size_t)n);
	if (p->run->attack->again && p->answered >= p->asked && p->due == NEVER)
		p->due = now + p->run->pause_ms * (NS / 1000);
}

static void
peer_event(struct peer *p, uint32_t events)
{
	if (p->fd < 0)
		return;
	if (p->connecting && events & (EPOLLOUT | EPOLLERR)) {
		if (events & EPOLLERR) {
			p->run->failed++;
			peer_end(p);
			return;
		}
		p->connecting = false;
		p->due = now;
		p->sip_at = p->run->attack->sip > 0 ? now : NEVER;
		watch(p, EPOLL_CTL_MOD);
	}
	if (p->blocked && events & EPOLLOUT)
		peer_send(p, p->rest, p->rest_len);
	if (p->fd >= 0 &&
	    (p->reading ? events & (EPOLLIN | EPOLLRDHUP) : events & (EPOLLRDHUP | EPOLLERR)))
		peer_read(p);
	else if (p->fd >= 0 && events & (EPOLLERR | EPOLLHUP)) {
		p->run->broken++;
		peer_end(p);
	}
}

/* ---------------------------------------------------------------- the loop */

static void
peer_tick(struct peer *p)
{
	if (p->sip_at <= now) {
		p->sip_at = now + SIP_NS;
		peer_read(p);
	}
	if (p->fd < 0 || p->due > now || p->blocked)
		return;
	if (p->last) {
		p->run->resets++;
		peer_end(p);
	} else
		peer_next(p);
}

static void
run_tick(struct run *r)
{
	unsigned i;

	for (i = 0; i < r->conns; i++) {
		if (r->peers[i].fd >= 0)
			peer_tick(&r->peers[i]);
		else if (r->next_connect <= now) {
			/* No burst after a pause: a slot that was free for long gives no credit. */
			r->next_connect =
			    (r->next_connect + TICK_NS * 5 > now ? r->next_connect : now) +
			    NS / r->rate;
			peer_open(&r->peers[i]);
		}
	}
	if (r->open > r->open_most)
		r->open_most = r->open;
}

static void
set_up(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	unsigned i, k;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (ep < 0)
		die("epoll", strerror(errno));
	for (i = 0; i < opt.nruns; i++) {
		struct run *r = &opt.runs[i];

		if ((r->peers = calloc(r->conns, sizeof(*r->peers))) == NULL)
			die("memory", strerror(errno));
		for (k = 0; k < r->conns; k++)
			r->peers[k] = (struct peer){ .run = r, .fd = -1 };
	}
}

void
engine_run(void)
{
	struct epoll_event evs[512];
	uint64_t started, end, tick = 0;
	bool said = false;
	unsigned i, k;
	int n;

	set_up();
	started = now = clock_ns();
	end = now + (uint64_t)(opt.seconds * (double)NS);
	while (!stop && (now = clock_ns()) < end) {
		if (now >= tick) {
			tick = now + TICK_NS;
			for (i = 0; i < opt.nruns; i++)
				run_tick(&opt.runs[i]);
		}
		if (!said && now - started > SETTLE_NS) {
			said = true;
			printf("running\n");
			fflush(stdout);
		}
		n = epoll_wait(ep, evs, 512, 1);
		now = clock_ns();
		for (i = 0; n > 0 && i < (unsigned)n; i++)
			peer_event(evs[i].data.ptr, evs[i].events);
	}
	for (i = 0; i < opt.nruns; i++)
		for (k = 0; k < opt.runs[i].conns; k++)
			if (opt.runs[i].peers[k].fd >= 0)
				peer_end(&opt.runs[i].peers[k]);
}
