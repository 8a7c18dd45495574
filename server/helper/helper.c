/* server/helper/helper.c -- the server's side of the helper process; see helper.h */
#include "server/helper/helper.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "io/tls/keys.h"
#include "server/helper/cgi.h"
#include "server/helper/impl.h"
#include "server/helper/starter.h"

/* the helper ends slow requests; after this time the helper itself is late */
#define LATE_MS      2000u
#define BUSY_MS      5u      /* before a busy helper is asked again */
#define LOAD_LATE_MS 3700000 /* longer than any server.reload-timeout */

struct helper {
	int fd, keys;       /* keys: to the process with the private keys */
	struct address cgi; /* .len 0: none */
	int wake;           /* wakes the main thread; -1: none */
	bool (*interrupted)(void *arg);
	void *arg;
};

/* ---------------------------------------------------------------- start */

/* Standard descriptors, and the descriptor of a configuration given as /dev/fd/N, as shells write
 * <(command). */
static void
close_others(const struct helper_of *of, int pair)
{
	const char *file = of->file;
	const char *number = file != NULL && strncmp(file, "/dev/fd/", 8) == 0 ? file + 8 : "-1";
	const int keep[] = { pair, of->cgi, of->keys, atoi(number) };
	int fd, last = 0;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(keep); i++)
		last = MAX(last, keep[i]);
	for (fd = 3; fd <= last; fd++) {
		for (i = 0; i < G_N_ELEMENTS(keep) && fd != keep[i]; i++)
			;
		if (i == G_N_ELEMENTS(keep))
			close(fd);
	}
	(void)syscall(SYS_close_range, (unsigned)fd, ~0u, 0u);
}

/* Workers connect to an abstract address, which the kernel chooses when a socket listens without
 * one.  It exists as long as the helper.  -1: there will be no programs. */
static int
cgi_listen(struct address *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*a = (struct address){ .len = sizeof(sa_family_t) };
	a->un.sun_family = AF_UNIX;
	if (fd >= 0 && bind(fd, &a->sa, a->len) == 0 && listen(fd, CGI_RUNNING_MAX) == 0) {
		a->len = sizeof(a->un);
		if (getsockname(fd, &a->sa, &a->len) == 0)
			return (fd);
	}
	a->len = 0;
	if (fd >= 0)
		close(fd);
	return (-1);
}

int
helper_start(const char *file, struct helper **hp)
{
	struct helper *h = calloc(1, sizeof(*h));
	struct helper_of of = { .server = getpid(), .file = file };
	int pair[2], keys[2], err;
	pid_t pid;

	if (h == NULL)
		return (-ENOMEM);
	of.cgi = cgi_listen(&h->cgi);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keys) != 0 ||
	    (pid = fork()) < 0) {
		err = -errno;
		free(h);
		return (err);
	}
	if (pid == 0) {
		free(h);
		starter_forget();
		of.keys = keys[1];
		close_others(&of, pair[1]);
		unsetenv("LISTEN_FDS");
		unsetenv("LISTEN_PID");
		unsetenv("LISTEN_FDNAMES");
		of.pair = pair[1];
		helper_guard(&of);
	}
	close(pair[1]);
	close(keys[1]);
	if (of.cgi >= 0)
		close(of.cgi);
	h->fd = pair[0];
	h->keys = keys[0];
	tls_keys_reach(helper_keys_connect, h);
	h->wake = -1;
	*hp = h;
	return (0);
}

void
helper_free(struct helper *h)
{
	if (h == NULL)
		return;
	tls_keys_reach(NULL, NULL);
	close(h->keys);
	close(h->fd);
	free(h);
}

int
helper_keys_fd(const struct helper *h)
{
	return (h->keys);
}

const struct address *
helper_cgi(const struct helper *h)
{
	return (h->cgi.len != 0 ? &h->cgi : NULL);
}

int
helper_fd(const struct helper *h)
{
	return (h->fd);
}

int
helper_event(const struct helper *h, struct helper_event *e)
{
	int other;
	ssize_t n = helper_recv(h->fd, e, sizeof(*e), &other);

	if (other >= 0)
		close(other);
	if (n == -EAGAIN || n == -EINTR)
		return (0);
	return (n == (ssize_t)sizeof(*e) ? 1 : n <= 0 ? -EPIPE : -EPROTO);
}

void
helper_interrupted_by(struct helper *h, int fd, bool (*interrupted)(void *arg), void *arg)
{
	h->wake = fd;
	h->interrupted = interrupted;
	h->arg = arg;
}

/* ---------------------------------------------------------------- asking */

/* Takes end, for the answer. */
static int
request(struct helper *h, enum helper_kind kind, const char *name, int end)
{
	char bytes[HELPER_NAME_MAX + 1];
	size_t n = helper_request_make(kind, name, bytes);
	int err = n == 0 ? -ENAMETOOLONG : helper_send(h->fd, bytes, n, end);

	close(end);
	return (err == -ECONNRESET || err == -ENOTCONN ? -EPIPE : err);
}

/* Returns the descriptor for the answer, or -errno. */
static int
ask(struct helper *h, enum helper_kind kind, const char *name, int type)
{
	int pair[2], err;

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) != 0)
		return (-errno);
	err = request(h, kind, name, pair[1]);
	if (err == 0)
		return (pair[0]);
	close(pair[0]);
	return (err);
}

int
helper_upgrade_start(struct helper *h, int end)
{
	return (request(h, HELPER_UPGRADE, "", end));
}

/* Waits until fd is readable.  0, -ETIMEDOUT, -ECANCELED. */
static int
wait_for(struct helper *h, int fd, uint64_t until_ns)
{
	bool wakes = h->wake >= 0 && getpid() == (pid_t)syscall(SYS_gettid);
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
		{ .fd = wakes ? h->wake : -1, .events = POLLIN } };
	uint64_t now;

	for (;;) {
		now = clock_mono_ns();
		if (now >= until_ns)
			return (-ETIMEDOUT);
		(void)poll(p, 2, (int)((until_ns - now) / NS_PER_MS) + 1);
		if (p[0].revents != 0)
			return (0);
		if (p[1].revents != 0 && h->interrupted(h->arg))
			return (-ECANCELED);
	}
}

/* *fdp: the descriptor of the answer, or -1.  *replyp: the descriptor of the request, if the result
 * is 0. */
static int
result_keep(struct helper *h, enum helper_kind kind, const char *name, int *fdp, int *replyp,
    char why[HELPER_WHY_MAX])
{
	int reply = ask(h, kind, name, SOCK_SEQPACKET), err;
	char bytes[sizeof(int32_t) + HELPER_WHY_MAX];
	ssize_t n;

	*fdp = -1;
	why[0] = '\0';
	if (reply < 0)
		return (reply);
	err = wait_for(h, reply, clock_mono_ns() + (HELPER_ANSWER_MS + LATE_MS) * NS_PER_MS);
	if (err == 0) {
		n = helper_recv(reply, bytes, sizeof(bytes), fdp);
		if (n > 0)
			err = helper_result_parse(bytes, (size_t)n, why);
		else
			err = n == 0 || n == -ECONNRESET ? -EPIPE : (int)n;
	}
	*replyp = reply;
	if (err != 0)
		close(reply);
	return (err);
}

static int
result(struct helper *h, enum helper_kind kind, const char *name, int *fdp,
    char why[HELPER_WHY_MAX])
{
	int reply, err = result_keep(h, kind, name, fdp, &reply, why);

	if (err == 0)
		close(reply);
	return (err);
}

/* For requests that open nothing: closes an unexpected descriptor. */
static int
done(struct helper *h, enum helper_kind kind, const char *name)
{
	char why[HELPER_WHY_MAX];
	int fd, err = result(h, kind, name, &fd, why);

	if (fd >= 0)
		close(fd);
	return (err);
}

static int
opened(struct helper *h, enum helper_kind kind, const char *name, char why[HELPER_WHY_MAX])
{
	int fd, err = result(h, kind, name, &fd, why);

	if (err == 0)
		return (fd >= 0 ? fd : -EPROTO);
	if (fd >= 0)
		close(fd);
	return (err);
}

/* At HUP the thread of each log asks.  If the helper is busy, the thread asks again.  If the helper
 * died, the thread asks the next one, once. */
int
helper_open_log(void *helper, const char *path)
{
	uint64_t until = clock_mono_ns() + HELPER_ANSWER_MS * NS_PER_MS, now;
	char why[HELPER_WHY_MAX];
	int fd, tries = 0;

	while ((fd = opened(helper, HELPER_LOG, path, why)) < 0 &&
	       (fd == -EAGAIN || (fd == -EPIPE && tries++ == 0)) && (now = clock_mono_ns()) < until)
		if (wait_for(helper, -1, now + BUSY_MS * NS_PER_MS) == -ECANCELED)
			return (-ECANCELED);
	return (fd);
}

int
helper_listen(struct helper *h, const char *address, char why[HELPER_WHY_MAX])
{
	return (opened(h, HELPER_LISTEN, address, why));
}

int
helper_control(struct helper *h, const char *address, char why[HELPER_WHY_MAX])
{
	return (opened(h, HELPER_CONTROL, address, why));
}

int
helper_spawn_start(struct helper *h, const char *line, char why[HELPER_WHY_MAX])
{
	int fd, reply, err = result_keep(h, HELPER_SPAWN, line, &fd, &reply, why);

	if (fd >= 0)
		close(fd);
	return (err == 0 ? reply : err);
}

int
helper_pidfile(struct helper *h, const char *path)
{
	return (done(h, HELPER_PIDFILE, path));
}

int
helper_remove_pidfile(struct helper *h, const char *path)
{
	return (done(h, HELPER_REMOVE_PIDFILE, path));
}

/* ---------------------------------------------------------------- addresses */

int
helper_resolve_start(struct helper *h, const char *spec)
{
	return (ask(h, HELPER_RESOLVE, spec, SOCK_SEQPACKET));
}

int
helper_resolve_end(int fd, struct helper_addresses *a, char why[HELPER_WHY_MAX])
{
	int other;
	ssize_t n = helper_recv(fd, a, sizeof(*a), &other);

	if (other >= 0)
		close(other);
	close(fd);
	why[0] = '\0';
	if (n <= 0)
		return (n == 0 || n == -ECONNRESET ? -EPIPE : (int)n);
	return (helper_addresses_parse(a, (size_t)n, why));
}

/* ---------------------------------------------------------------- the configuration */

static int
load_start(struct helper *h, enum helper_kind kind, const char *name, struct helper_load *load)
{
	int fd = ask(h, kind, name, SOCK_STREAM);

	*load = (struct helper_load){ .fd = -1 };
	if (fd < 0)
		return (fd);
	load->fd = fd;
	load->sources = sources_replay();
	load->until_ns =
	    kind == HELPER_LOAD ? clock_mono_ns() + LOAD_LATE_MS * NS_PER_MS : UINT64_MAX;
	return (0);
}

int
helper_load_start(struct helper *h, struct helper_load *load)
{
	return (load_start(h, HELPER_LOAD, "", load));
}

int
helper_renew_start(struct helper *h, const char *digest, uint64_t list, struct helper_load *load)
{
	char name[HELPER_NAME_MAX];

	snprintf(name, sizeof(name), "%s %" PRIx64, digest, list);
	return (load_start(h, HELPER_RENEW, name, load));
}

void
helper_load_stop(struct helper_load *load)
{
	if (load->fd >= 0)
		close(load->fd);
	load->fd = -1;
	sources_free(load->sources);
	load->sources = NULL;
}

/* True if there is memory for as much as the child needed, so that the server's parser will not run
 * out of memory. */
static bool
memory_there(uint64_t n)
{
	/* volatile: otherwise the compiler removes the call */
	void *volatile p = malloc(n + n / 2 + (1u << 20));
	bool there = p != NULL;

	free(p);
	return (there);
}

static bool
failed(struct helper_load *load, const char *what, char *why, size_t size)
{
	struct buf waits;

	buf_init(&waits, 0);
	sources_waits_for(load->sources, &waits);
	snprintf(why, size, "%s%.*s%s", waits.n > 0 ? "reading " : "", (int)waits.n,
	    waits.n > 0 ? waits.p : "", waits.n > 0 ? ": " : "");
	snprintf(why + strlen(why), size - strlen(why), "%s", what);
	buf_free(&waits);
	helper_load_stop(load);
	return (true);
}

/* As recv(2). */
static ssize_t
feed(const struct helper_load *load, int *err)
{
	char bytes[65536];
	ssize_t n = recv(load->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0) {
		*err = sources_feed(load->sources, bytes, (size_t)n);
		explicit_bzero(bytes, (size_t)n); /* perhaps private keys */
	}
	return (n);
}

bool
helper_load_more(struct helper_load *load, char *why, size_t size)
{
	ssize_t n;
	int err;

	why[0] = '\0';
	while ((n = feed(load, &err)) > 0) {
		if (err != 0)
			return (failed(load, err == -ENOMEM ? "not enough memory" : strerror(-err),
			    why, size));
		if (sources_failure(load->sources) != NULL)
			return (failed(load, sources_failure(load->sources), why, size));
	}
	if (sources_whole(load->sources)) {
		if (!memory_there(sources_memory(load->sources)))
			return (failed(load, "not enough memory", why, size));
		close(load->fd);
		load->fd = -1;
		return (true);
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		return (failed(load, HELPER_LOST " reload again", why, size));
	return (clock_mono_ns() < load->until_ns
		    ? false
		    : failed(load, "the helper process does not answer", why, size));
}

struct sources *
helper_load(struct helper *h, char *why, size_t size)
{
	struct helper_load load;
	int err = helper_load_start(h, &load);

	if (err != 0) {
		snprintf(why, size, "the helper process: %s", strerror(-err));
		return (NULL);
	}
	while (wait_for(h, load.fd, load.until_ns) != -ECANCELED)
		if (helper_load_more(&load, why, size))
			return (load.sources);
	failed(&load, "interrupted", why, size);
	return (NULL);
}
