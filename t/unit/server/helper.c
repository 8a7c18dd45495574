/* t/unit/server/helper.c -- requests that the helper process takes and refuses; a record and its
 * replay. */
#include <errno.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/must.h"
#include "server/config/certificates.h"
#include "server/config/config.h"
#include "server/helper/helper.h"
#include "server/helper/impl.h"
#include "server/helper/kept.h"
#include "server/helper/wire.h"
#include "t/unit/test.h"

static char *dir;

static char *
put(const char *name, const char *text)
{
	char *path = g_build_filename(dir, name, NULL);

	g_assert_true(g_file_set_contents(path, text, -1, NULL));
	return (path);
}

/* ---------------------------------------------------------------- requests */

TEST("/helper/requests are short and whole")
{
	static char bytes[HELPER_NAME_MAX + 2];
	struct helper_request r;
	size_t n;

	n = helper_request_make(HELPER_LOG, "/a/b", bytes);
	g_assert_cmpuint(n, ==, 5);
	g_assert_cmpint(helper_request_parse(bytes, n, &r), ==, 0);
	g_assert_cmpint(r.kind, ==, HELPER_LOG);
	g_assert_cmpstr(r.name, ==, "/a/b");
	g_assert_cmpint(helper_request_parse(bytes, 1, &r), ==, -EINVAL); /* a log without a name */
	g_assert_cmpint(helper_request_parse(bytes, 0, &r), ==, -EINVAL);
	bytes[0] = HELPER_LOAD;
	g_assert_cmpint(helper_request_parse(bytes, 1, &r), ==, 0);
	g_assert_cmpint(helper_request_parse(bytes, 5, &r), ==, -EINVAL); /* a load with one */
	bytes[0] = HELPER_UPGRADE;
	g_assert_cmpint(helper_request_parse(bytes, 1, &r), ==, 0);
	g_assert_cmpint(helper_request_parse(bytes, 5, &r), ==, -EINVAL); /* neither has this */
	bytes[0] = HELPER_RENEW;
	g_assert_cmpint(helper_request_parse(bytes, 5, &r), ==, 0);
	g_assert_cmpint(helper_request_parse(bytes, 1, &r), ==, -EINVAL);
	bytes[0] = HELPER_KINDS;
	g_assert_cmpint(helper_request_parse(bytes, 5, &r), ==, -EINVAL);
	bytes[0] = -1;
	g_assert_cmpint(helper_request_parse(bytes, 5, &r), ==, -EINVAL);
	bytes[0] = HELPER_LOG;
	bytes[2] = '\0';
	g_assert_cmpint(helper_request_parse(bytes, 5, &r), ==, -EINVAL);
	memset(bytes + 1, 'x', HELPER_NAME_MAX);
	g_assert_cmpint(helper_request_parse(bytes, HELPER_NAME_MAX, &r), ==, 0);
	g_assert_cmpint(helper_request_parse(bytes, HELPER_NAME_MAX + 1, &r), ==, -EINVAL);
	g_assert_cmpuint(helper_request_make(HELPER_LOG, bytes + 1, bytes), ==, 0);
}

TEST("/helper/names are whole")
{
	struct helper_name good = { .kind = HELPER_LISTEN, .congestion = "cubic", .name = ":80" },
			   n, bad;

	g_assert_cmpint(helper_name_parse(&good, sizeof(good), &n), ==, 0);
	g_assert_cmpstr(n.name, ==, ":80");
	g_assert_cmpint(helper_name_parse(&good, sizeof(good) - 1, &n), ==, -EPROTO);
	bad = good;
	memset(bad.congestion, 'x', sizeof(bad.congestion)); /* without an end */
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, -EPROTO);
	bad = good;
	memset(bad.name, 'x', sizeof(bad.name));
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, -EPROTO);
	bad = good;
	bad.kind = HELPER_ACTIVATED; /* handed over, never allowed by name */
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, -EPROTO);
	bad.kind = HELPER_UPGRADE; /* needs no name */
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, -EPROTO);
	bad.kind = HELPER_ACTIVATED; /* only handed over */
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, -EPROTO);
	bad = (struct helper_name){ .kind = HELPER_CERTIFICATE, .keys = 2, .name = "x" };
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, 0);
	bad.keys++;
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, -EPROTO);
	bad = (struct helper_name){ .kind = HELPER_LOAD, .timeout_ms = HELPER_LOAD_MAX_MS };
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, 0);
	bad.timeout_ms++;
	g_assert_cmpint(helper_name_parse(&bad, sizeof(bad), &n), ==, -EPROTO);
}

/* A number above 0 would pass for a descriptor. */
TEST("/helper/results are errors or none")
{
	static const int32_t v[][2] = { { 0, 0 }, { -EPERM, -EPERM }, { -ERRNO_MAX, -ERRNO_MAX },
		{ 5, -EPROTO }, { INT32_MIN, -EPROTO } };
	struct {
		int32_t res;
		char why[HELPER_WHY_MAX];
	} long_one = { -EPERM, "the reason" };
	char why[HELPER_WHY_MAX];
	size_t i;

	for (i = 0; i < NELEM(v); i++) {
		g_assert_cmpint(helper_result_parse(&v[i][0], sizeof(v[i][0]), why), ==, v[i][1]);
		g_assert_cmpstr(why, ==, "");
	}
	g_assert_cmpint(helper_result_parse(&v[0][0], 3, why), ==, -EPROTO);
	g_assert_cmpint(helper_result_parse(&long_one, 4 + strlen(long_one.why), why), ==, -EPERM);
	g_assert_cmpstr(why, ==, "the reason");
	g_assert_cmpint(helper_result_parse(&long_one, sizeof(long_one) - 1, why), ==, -EPERM);
	g_assert_cmpint(helper_result_parse(&long_one, sizeof(long_one), why), ==, -EPROTO);
}

TEST("/helper/the outcome of an upgrade is whole")
{
	static const int32_t v[][3] = { { 0, 7, 0 }, { 78, 7, 0 }, { 255, 7, 0 },
		{ 256, 7, -EPROTO }, { -1, 7, -EPROTO }, { 0, 0, -EPROTO }, { 0, -7, -EPROTO } };
	static char bytes[8 + HELPER_CAUSE_MAX + 1];
	struct helper_upgraded u;
	size_t i;

	for (i = 0; i < NELEM(v); i++)
		g_assert_cmpint(helper_upgraded_parse(v[i], 8, &u), ==, v[i][2]);
	for (i = 0; i < 8; i++)
		g_assert_cmpint(helper_upgraded_parse(v[0], i, &u), ==, -EPROTO);
	memcpy(bytes, v[1], 8);
	memcpy(bytes + 8, "why", 3);
	g_assert_cmpint(helper_upgraded_parse(bytes, 11, &u), ==, 0);
	g_assert_cmpint(u.status, ==, 78);
	g_assert_cmpint(u.pid, ==, 7);
	g_assert_true(text_eq(u.cause, TEXT("why")));
	g_assert_cmpint(helper_upgraded_parse(bytes, sizeof(bytes) - 1, &u), ==, 0);
	g_assert_cmpint(helper_upgraded_parse(bytes, sizeof(bytes), &u), ==, -EPROTO);
}

/* Addresses come from a process that may be under control of a name server. */
TEST("/helper/addresses are checked")
{
	const size_t head = offsetof(struct helper_addresses, v), one = sizeof(struct address);
	struct helper_addresses a = { 0 };
	char why[HELPER_WHY_MAX];

	g_assert_cmpint(address_parse("10.0.0.1:80", &a.v[0]), ==, 0);
	g_assert_cmpint(address_parse("[::1]:80", &a.v[1]), ==, 0);
	g_assert_cmpint(helper_addresses_parse(&a, head + 2 * one, why), ==, 2);
	g_assert_cmpint(helper_addresses_parse(&a, head, why), ==, -EPROTO);
	g_assert_cmpint(helper_addresses_parse(&a, head + one + 1, why), ==, -EPROTO);
	g_assert_cmpint(helper_addresses_parse(&a, 3, why), ==, -EPROTO);
	a.v[1].len = 4000;
	g_assert_cmpint(helper_addresses_parse(&a, head + 2 * one, why), ==, -EPROTO);
	g_assert_cmpint(address_parse("unix:/run/a", &a.v[1]), ==, 0);
	g_assert_cmpint(helper_addresses_parse(&a, head + 2 * one, why), ==, -EPROTO);
	a.err = -EHOSTUNREACH;
	memcpy(a.v, "the reason", 10);
	g_assert_cmpint(helper_addresses_parse(&a, head + 10, why), ==, -EHOSTUNREACH);
	g_assert_cmpstr(why, ==, "the reason");
	g_assert_cmpint(helper_addresses_parse(&a, sizeof(a), why), ==, -EHOSTUNREACH);
	g_assert_cmpint(helper_addresses_parse(&a, sizeof(a.err), why), ==, -EHOSTUNREACH);
	g_assert_cmpstr(why, ==, "");
	a.err = 1;
	g_assert_cmpint(helper_addresses_parse(&a, head + 10, why), ==, -EPROTO);
}

/* Sends one byte with n copies of the descriptor. */
static void
send_copies(int sock, int fd, size_t n)
{
	union {
		char room[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { (char[]){ 'x' }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	size_t i;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	g_assert_cmpint(sendmsg(sock, &msg, MSG_NOSIGNAL), ==, 1);
}

TEST("/helper/messages are whole and carry one descriptor")
{
	static const size_t many[] = { 2, 16 };
	char byte;
	int pair[2], fd, next, i;

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
	next = dup(0); /* the lowest free number: it shows that no descriptor stays open */
	close(next);
	g_assert_cmpint(helper_recv(pair[0], &byte, 1, &fd), ==, -EAGAIN);
	for (i = 0; i < (int)NELEM(many); i++) {
		send_copies(pair[1], pair[1], many[i]);
		g_assert_cmpint(helper_recv(pair[0], &byte, 1, &fd), ==, -EINVAL);
		g_assert_cmpint(fd, ==, -1);
	}
	send_copies(pair[1], pair[1], 1);
	g_assert_cmpint(helper_recv(pair[0], &byte, 1, &fd), ==, 1);
	g_assert_cmpint(fd, ==, next);
	close(fd);
	g_assert_cmpint(helper_send(pair[1], "long", 4, -1), ==, 0);
	g_assert_cmpint(helper_recv(pair[0], &byte, 1, &fd), ==, -EMSGSIZE);
	close(pair[1]);
	g_assert_cmpint(helper_recv(pair[0], &byte, 1, &fd), ==, 0);
	g_assert_cmpint(helper_send(pair[0], "x", 1, -1), ==, -EPIPE);
	close(pair[0]);
}

static int32_t
answer_to(struct helper *h, const void *p, size_t n)
{
	struct pollfd pfd = { .events = POLLIN };
	int32_t res = 0;
	int pair[2], fd;

	g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), ==, 0);
	g_assert_cmpint(helper_send(helper_fd(h), p, n, pair[1]), ==, 0);
	close(pair[1]);
	pfd.fd = pair[0];
	g_assert_cmpint(poll(&pfd, 1, 20000), ==, 1);
	g_assert_cmpint(helper_recv(pair[0], &res, sizeof(res), &fd), ==, sizeof(res));
	g_assert_cmpint(fd, ==, -1);
	close(pair[0]);
	return (res);
}

/* The number of the first child; the guardian's is the helper. */
static pid_t
child_of(pid_t pid)
{
	char *path = g_strdup_printf("/proc/%d/task/%d/children", (int)pid, (int)pid), *text;

	g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
	pid = (pid_t)strtol(text, NULL, 10);
	g_free(path);
	g_free(text);
	return (pid);
}

static void
event_is(struct helper *h, enum helper_news news, uint32_t lost)
{
	struct pollfd p = { .fd = helper_fd(h), .events = POLLIN };
	struct helper_event e;

	g_assert_cmpint(poll(&p, 1, 20000), ==, 1);
	g_assert_cmpint(helper_event(h, &e), ==, 1);
	g_assert_cmpint(e.news, ==, news);
	g_assert_cmpint(e.lost, ==, lost);
	g_assert_cmpint(e.status, ==, SIGKILL);
}

static void
kill_helper(struct helper *h)
{
	struct helper_event e;

	g_assert_cmpint(helper_event(h, &e), ==, 0);
	g_assert_cmpint(kill(child_of(child_of(getpid())), SIGKILL), ==, 0);
	event_is(h, HELPER_DIED, 1);
	event_is(h, HELPER_BACK, 1);
	g_assert_cmpint(helper_event(h, &e), ==, 0);
}

TEST("/helper/only what the configuration names is opened")
{
	g_autofree char *log = g_build_filename(dir, "named.log", NULL),
			*other = g_build_filename(dir, "other.log", NULL);
	char *text =
	    g_strdup_printf("server.document-root = \"%s\"\nserver.errorlog = \"%s\"\n", dir, log);
	char *file = put("helper.conf", text), why[512], big[4096];
	struct sources *record;
	struct helper *h;
	int fd;

	g_assert_cmpint(helper_start(file, &h), ==, 0);
	g_assert_cmpint(helper_open_log(h, log), ==, -EPERM); /* nothing was read yet */
	record = helper_load(h, why, sizeof(why));
	g_assert_nonnull(record);
	sources_free(record);
	fd = helper_open_log(h, log);
	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(write(fd, "x", 1), ==, 1);
	close(fd);

	g_assert_cmpint(helper_open_log(h, other), ==, -EPERM);
	g_assert_false(g_file_test(other, G_FILE_TEST_EXISTS));
	g_assert_cmpint(helper_open_log(h, "/etc/passwd"), ==, -EPERM);
	g_assert_cmpint(helper_listen(h, "127.0.0.1:1", why), ==, -EPERM);
	g_assert_cmpint(helper_listen(h, log, why), ==, -EPERM); /* a name of another kind */
	g_assert_cmpint(helper_pidfile(h, log), ==, -EPERM);
	g_assert_cmpint(helper_remove_pidfile(h, log), ==, -EPERM);
	memset(big, 'x', sizeof(big));
	g_assert_cmpint(answer_to(h, big, sizeof(big)), ==, -EINVAL);
	g_assert_cmpint(answer_to(h, "garbage", 7), ==, -EINVAL);
	g_assert_cmpint(answer_to(h, "\x02/a\0b", 5), ==, -EINVAL);
	g_assert_cmpint(helper_send(helper_fd(h), "\x01", 1, -1), ==, 0); /* nowhere to answer to */
	fd = helper_open_log(h, log);
	g_assert_cmpint(fd, >=, 0); /* it goes on after all that */
	close(fd);

	kill_helper(h); /* the next one has the same names: no more, no fewer */
	g_assert_cmpint(helper_open_log(h, other), ==, -EPERM);
	g_assert_cmpint(helper_pidfile(h, log), ==, -EPERM);
	fd = helper_open_log(h, log);
	g_assert_cmpint(fd, >=, 0);
	close(fd);
	helper_free(h);
	g_assert_cmpint(wait(NULL), >, 0); /* the guardian */
	g_unlink(file);
	g_unlink(log);
	g_free(text);
	g_free(file);
}

/* ---------------------------------------------------------------- private keys */

static const char private_key[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIM76hS4tYDO1es824yEnAaYs34cm7UNlfi0PfqwpMaY5\n"
    "-----END PRIVATE KEY-----\n";

static int
told(struct helper_hiding *h)
{
	struct text file = { strdup(private_key), strlen(private_key) };
	int err = helper_hide_keys(h, &file);

	free((char *)(uintptr_t)file.p);
	return (err);
}

/* As a process that hangs. */
static void
feed_fill(const int feed[2])
{
	const struct timeval soon = { .tv_usec = 10000 };

	g_assert_cmpint(setsockopt(feed[0], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)), ==, 0);
	while (send(feed[0], private_key, sizeof(private_key), 0) > 0)
		;
	g_assert_cmpint(errno, ==, EAGAIN);
}

static unsigned
feed_empty(const int feed[2])
{
	char key[sizeof(private_key)];
	unsigned n = 0;

	while (recv(feed[1], key, sizeof(key), MSG_DONTWAIT) > 0)
		n++;
	return (n);
}

/* It is waited for once; and a record without its keys, which would be taken for what the files
 * have, is not handed over. */
TEST("/helper/keys that nobody takes")
{
	struct helper_name name = { .kind = HELPER_CERTIFICATE, .keys = 1 };
	struct helper_of of = { 0 };
	struct helper_hiding h = { .of = &of, .use = 1 }, other = h;
	struct helper_kept kept;
	int pair[2], status;
	char *path;
	pid_t child;

	g_assert_cmpint(helper_keys_feed(of.feed), ==, 0);
	feed_fill(of.feed);
	g_assert_cmpint(told(&h), ==, -ETIMEDOUT);
	g_assert_cmpuint(feed_empty(of.feed), >, 0);
	g_assert_cmpint(told(&h), ==, -ETIMEDOUT);
	g_assert_cmpuint(feed_empty(of.feed), ==, 0);
	g_assert_cmpint(told(&other), ==, 0);
	g_assert_cmpuint(feed_empty(of.feed), ==, 1);

	path = put("key.pem", private_key);
	g_strlcpy(name.name, path, sizeof(name.name));
	helper_kept_init(&kept);
	helper_keep(&kept, &name);
	helper_keep(&kept, &(struct helper_name){ .kind = HELPER_LOAD, .timeout_ms = 1000 });
	feed_fill(of.feed);
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), ==, 0);
	child = fork();
	g_assert_cmpint(child, >=, 0);
	if (child == 0)
		_exit(helper_work_renew(&of, &kept, "-", pair[0]));
	g_assert_cmpint(waitpid(child, &status, 0), ==, child);
	g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	g_assert_cmpint(feed_empty(pair), ==, 0);
	close(pair[0]);
	close(pair[1]);
	close(of.feed[0]);
	close(of.feed[1]);
	g_unlink(path);
	g_free(path);
	g_ptr_array_free(kept.names, TRUE);
	g_hash_table_destroy(kept.set);
}

/* The process with the keys may die when it has one: the next one has to know its file. */
TEST("/helper/the name of a file goes before its key")
{
	const struct timeval late = { .tv_sec = 60 };
	char *pem = put("key.pem", private_key);
	char *text = g_strdup_printf("server.document-root = \"%s\"\nssl.engine = \"enable\"\n"
				     "ssl.key-process = \"enable\"\nssl.pemfile = \"%s\"\n",
	    dir, pem);
	char *file = put("keys.conf", text);
	struct helper_of of = { .file = file };
	struct pollfd p = { .events = POLLIN };
	struct helper_name name = { 0 };
	int guardian[2], names[2], reply = memfd_create("record", MFD_CLOEXEC), status;
	pid_t child;

	g_assert_cmpint(helper_keys_feed(of.feed), ==, 0);
	feed_fill(of.feed);
	g_assert_cmpint(setsockopt(of.feed[0], SOL_SOCKET, SO_SNDTIMEO, &late, sizeof(late)), ==,
	    0);
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, guardian), ==, 0);
	g_assert_cmpint(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, names), ==, 0);
	of.keep = guardian[1];
	child = fork();
	g_assert_cmpint(child, >=, 0);
	if (child == 0)
		_exit(helper_work_load(&of, reply, names[1]));
	p.fd = guardian[0];
	while (name.kind != HELPER_CERTIFICATE) {
		g_assert_cmpint(poll(&p, 1, 10000), ==, 1);
		g_assert_cmpint(recv(guardian[0], &name, sizeof(name), 0), ==, sizeof(name));
	}
	g_assert_cmpstr(name.name, ==, pem);
	g_assert_cmpint(name.keys, ==, 1);
	while (waitpid(child, &status, WNOHANG) == 0)
		(void)feed_empty(of.feed);
	g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(guardian[0]);
	close(guardian[1]);
	close(names[0]);
	close(names[1]);
	close(of.feed[0]);
	close(of.feed[1]);
	close(reply);
	g_unlink(file);
	g_unlink(pem);
	g_free(file);
	g_free(text);
	g_free(pem);
}

/* ---------------------------------------------------------------- certificates */

/* The next record whose digest differs from *digest, which becomes that of this record. */
static struct sources *
renewed(struct helper *h, uint64_t list, char **digest)
{
	struct helper_load load;
	struct pollfd p = { .events = POLLIN };
	char why[512];

	g_assert_cmpint(helper_renew_start(h, *digest, list, &load), ==, 0);
	p.fd = load.fd;
	do
		g_assert_cmpint(poll(&p, 1, 20000), ==, 1);
	while (!helper_load_more(&load, why, sizeof(why)));
	g_assert_cmpstr(why, ==, "");
	g_free(*digest);
	*digest = sources_digest(load.sources);
	return (load.sources);
}

static void
has_file(struct sources *s, const char *file, const char *text, int err)
{
	struct source is = sources_get(s, SOURCE_FILE, file, NULL);

	g_assert_cmpint(is.err, ==, err);
	g_assert_true(text == NULL || text_eq(is.bytes, text_of(text)));
	source_free(&is);
}

/* Its list of certificates. */
static uint64_t
load(struct helper *h, const char *file)
{
	char why[512];
	struct sources *s = helper_load(h, why, sizeof(why));
	struct config *config;
	struct buf err, warn;
	uint64_t list;

	g_assert_nonnull(s);
	buf_init(&err, 0);
	buf_init(&warn, 0);
	config = config_load(file, s, &err, &warn);
	g_assert_nonnull(config);
	list = certificates_list(config);
	config_free(config);
	buf_free(&warn);
	return (list);
}

TEST("/helper/certificates that change are read, and nothing else")
{
	char *pem = put("x.pem", "one"), *key = put("x.key", "key"),
	     *secret = put("secret", "not named"), *digest = g_strdup("-");
	g_autofree char *text =
	    g_strdup_printf("server.document-root = \"%s\"\nssl.pemfile = \"%s\"\n"
			    "ssl.privkey = \"%s\"\n",
		dir, pem, key);
	g_autofree char *less =
	    g_strdup_printf("server.document-root = \"%s\"\nssl.pemfile = \"%s\"\n", dir, pem);
	char *file = put("helper.conf", text);
	struct helper_load waits;
	struct sources *s;
	struct helper *h;
	uint64_t list, next;

	g_assert_cmpint(helper_start(file, &h), ==, 0);
	list = load(h, file);
	s = renewed(h, list, &digest);
	has_file(s, pem, "one", 0);
	has_file(s, key, "key", 0);
	has_file(s, secret, NULL, -ENODATA);
	sources_free(s);
	g_assert_cmpint(helper_renew_start(h, digest, list, &waits), ==, 0);
	g_free(put("x.key", "next"));
	kill_helper(h); /* the one that waits ends; the next one finds the change */
	helper_load_stop(&waits);
	s = renewed(h, list, &digest);
	has_file(s, pem, "one", 0);
	has_file(s, key, "next", 0);
	sources_free(s);
	g_unlink(pem);
	s = renewed(h, list, &digest);
	has_file(s, pem, NULL, -ENOENT);
	sources_free(s);
	g_free(put("helper.conf", less)); /* the key is not named any more */
	next = load(h, file);
	g_free(put("x.key", "last")); /* the server may have refused the new list */
	s = renewed(h, list, &digest);
	has_file(s, key, "last", 0);
	sources_free(s);
	s = renewed(h, next, &digest);
	has_file(s, key, NULL, -ENODATA);
	sources_free(s);
	helper_free(h);
	g_assert_cmpint(wait(NULL), >, 0);
	g_unlink(key);
	g_unlink(secret);
	g_unlink(file);
	g_free(file);
	g_free(digest);
	g_free(pem);
	g_free(key);
	g_free(secret);
}

/* ---------------------------------------------------------------- replay */

/* All bytes that a recording run of config_load() writes. */
static GByteArray *
record_of(const char *file)
{
	struct buf err, warn;
	GByteArray *all = g_byte_array_new();
	struct config *c;
	FILE *f = tmpfile();
	char piece[4096];
	size_t n;

	g_assert_nonnull(f);
	buf_init(&err, 0);
	buf_init(&warn, 0);
	c = config_load(file, sources_record(fileno(f)), &err, &warn);
	if (c != NULL)
		sources_end(config_sources(c), 1);
	config_free(c);
	rewind(f);
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		g_byte_array_append(all, (const guint8 *)piece, (guint)n);
	fclose(f);
	buf_free(&err);
	buf_free(&warn);
	return (all);
}

/* The printed configuration, or the messages. */
static char *
outcome(const char *file, struct sources *sources)
{
	struct buf err, warn;
	struct config *c;
	char *s;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	c = config_load(file, sources, &err, &warn);
	if (c != NULL)
		config_print(c, &err);
	buf_add(&err, warn.p, warn.n);
	s = g_strndup(err.p, err.n);
	config_free(c);
	buf_free(&err);
	buf_free(&warn);
	return (s);
}

static void
same_as_direct(const char *text)
{
	char *file = put("replay.conf", text), *part = put("part-1.inc", "server.tag = \"x\"\n"),
	     *direct, *replayed;
	GByteArray *record = record_of(file);
	struct sources *s = sources_replay();
	guint i;

	direct = outcome(file, NULL);
	for (i = 0; i < record->len; i++) /* byte by byte */
		g_assert_cmpint(sources_feed(s, record->data + i, 1), ==, 0);
	g_unlink(file);
	g_unlink(part);
	replayed = outcome(file, s);
	g_assert_cmpstr(replayed, ==, direct);
	g_byte_array_free(record, TRUE);
	g_free(file);
	g_free(part);
	g_free(direct);
	g_free(replayed);
}

TEST("/helper/a replay gives what the system gave")
{
	same_as_direct("server.document-root = \"/srv\"\ninclude \"part-*.inc\"\ninclude_shell "
		       "\"echo server.port = 81\"\n");
	same_as_direct("server.document-root = \"/srv\"\ninclude \"none-*.inc\"\n");
	same_as_direct("server.document-root = \"/srv\"\ninclude \"none.inc\"\n");
	same_as_direct("server.document-root = \"/srv\"\ninclude_shell \"echo; echo oops\"\n");
	same_as_direct("server.document-root = \"/srv\"\ninclude_shell \"exit 3\"\n");
	same_as_direct("server.document-root = \"/srv\"\ninclude \"replay.conf\"\n");
	same_as_direct("server.port = 1\n");
}

TEST("/helper/broken records are refused")
{
	static const uint32_t bad[][2] = { { 99, 4 }, { 0, 0 }, { 0, 1u << 30 } };
	struct sources *s;
	char item[128];
	struct source is;
	size_t i;

	for (i = 0; i < NELEM(bad); i++) {
		s = sources_replay();
		g_assert_cmpint(sources_feed(s, bad[i], sizeof(bad[i])), ==, -EPROTO);
		sources_free(s);
	}
	s = sources_replay();
	g_assert_cmpint(sources_feed(s, item, sources_put_failure(item, sizeof(item), "it died")),
	    ==, 0);
	g_assert_cmpstr(sources_failure(s), ==, "it died");
	g_assert_false(sources_whole(s));
	is = sources_get(s, SOURCE_FILE, "/etc/passwd", NULL);
	g_assert_cmpint(is.err, ==, -ENODATA); /* a replay never asks the system */
	g_assert_cmpint(sources_feed(s, "x", 1), ==, -EPROTO);
	sources_free(s);
}

/* An answer with this number in the place of an error. */
static int
feed_error(int32_t err)
{
	const struct {
		uint32_t kind, nkey;
		char key[4];
		uint32_t answer;
		int32_t err, status;
		uint32_t nbytes, nextra;
	} record = { SOURCE_FILE, 4, "key", SOURCE_KINDS + 2, err, 0, 0, 0 };
	struct sources *s = sources_replay();
	int res = sources_feed(s, &record, sizeof(record));

	sources_free(s);
	return (res);
}

TEST("/helper/errors that are none are refused")
{
	struct sources *s = sources_replay();
	struct buf b;

	buf_init(&b, 0);
	sources_waits_for(s, &b); /* the helper ended before its first byte */
	g_assert_cmpuint(b.n, ==, 0);
	sources_free(s);
	g_assert_cmpint(feed_error(-ENOENT), ==, 0);
	g_assert_cmpint(feed_error(ENOENT), ==, -EPROTO);
	g_assert_cmpint(feed_error(INT32_MIN), ==, -EPROTO);
}

int
main(int argc, char **argv)
{
	int res;

	g_test_init(&argc, &argv, NULL);
	dir = g_dir_make_tmp("helper-XXXXXX", NULL);
	res = tests_run();
	g_rmdir(dir);
	g_free(dir);
	return (res);
}
