#include "control.h"
#include "job.h"
#include "node.h"
#include "ops.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_fd = -1;
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static struct fuse_session *session;
static int forgetting;

/* ---------------------------------------------------------------- orders
 *
 * Each gets what stands after its name, and returns NULL or why not.
 */
static const char *
order(const struct outcome *o, off_t from, const char *pattern)
{
	if (*pattern == '\0')
		pattern = "*";
	else if (*pattern != '/' && *pattern != '*')
		return ("a pattern begins with / or *");
	return (jobs_rule(o, from, pattern) == 0 ? NULL : "no memory");
}

/* The first word, cut off; *rest is what follows. */
static char *
word(char **rest)
{
	char *w = *rest, *end = w + strcspn(w, " \t");

	*rest = end + strspn(end, " \t");
	*end = '\0';
	return (w);
}

static const char *
offset(char **rest, off_t *from)
{
	char *w = word(rest), *end;
	long long v;

	errno = 0;
	v = strtoll(w, &end, 10);
	if (end == w || *end != '\0' || v < 0 || errno != 0)
		return ("OFFSET is a number of bytes");
	*from = (off_t)v;
	return (NULL);
}

static const char *
errno_named(char **rest, int *err)
{
	const char *w = word(rest), *name;

	for (*err = 1; *err < 512; ++*err) {
		name = strerrorname_np(*err);
		if (name != NULL && strcmp(name, w) == 0)
			/* The kernel takes ENOSYS for "never ask again". */
			return (*err == ENOSYS ? "ENOSYS would last longer than the rule" : NULL);
	}
	return ("ERRNO is a name like EIO");
}

static const char *
order_hang(char *rest)
{
	return (order(&(struct outcome){ .effect = HANG }, -1, rest));
}

static const char *
order_hang_spindle(char *rest)
{
	return (order(&(struct outcome){ .effect = HANG, .keeps_spindle = true }, -1, rest));
}

static const char *
order_hang_after(char *rest)
{
	const char *why;
	off_t from;

	if ((why = offset(&rest, &from)) != NULL)
		return (why);
	return (order(&(struct outcome){ .effect = HANG }, from, rest));
}

static const char *
order_fail(char *rest)
{
	struct outcome o = { .effect = FAIL };
	const char *why;

	if ((why = errno_named(&rest, &o.err)) != NULL)
		return (why);
	return (order(&o, -1, rest));
}

static const char *
order_fail_after(char *rest)
{
	struct outcome o = { .effect = FAIL };
	const char *why;
	off_t from;

	if ((why = offset(&rest, &from)) != NULL || (why = errno_named(&rest, &o.err)) != NULL)
		return (why);
	return (order(&o, from, rest));
}

static const char *
order_refuse_direct(char *rest)
{
	if (strcmp(rest, "on") != 0 && strcmp(rest, "off") != 0)
		return ("on or off?");
	ops_refuse_direct(strcmp(rest, "on") == 0);
	return (NULL);
}

/* Pages and attributes, then the name.  What the kernel does not know any more is forgotten
 * already. */
static void
forget(const struct node *n)
{
	const char *name;
	fuse_ino_t parent;

	fuse_lowlevel_notify_inval_inode(session, node_ino(n), 0, 0);
	if ((parent = node_parent(n, &name)) != 0)
		fuse_lowlevel_notify_inval_entry(session, parent, name, strlen(name));
}

/* The kernel takes the locks of directories and pages for this.  Waiting look-ups and reads hold
 * them.
 * Slow requests end.  For one that hangs, this thread would wait where no signal reaches it. */
static const char *
order_forget(char *rest)
{
	struct node **list;
	size_t count, i;

	if (jobs_can_hang())
		return ("something hangs, or may: `go` first");
	if (nodes_matching(*rest != '\0' ? rest : "*", &list, &count) != 0)
		return ("no memory");
	__atomic_add_fetch(&forgetting, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < count; i++)
		forget(list[i]);
	__atomic_sub_fetch(&forgetting, 1, __ATOMIC_SEQ_CST);
	nodes_release(list, count);
	return (NULL);
}

static const char *
order_go(char *rest)
{
	jobs_go();
	return (NULL);
}

static const struct {
	const char *name;
	const char *(*run)(char *rest);
} orders[] = {
	{ "hang", order_hang },
	{ "hang-after", order_hang_after },
	{ "hang-spindle", order_hang_spindle },
	{ "fail", order_fail },
	{ "fail-after", order_fail_after },
	{ "refuse-direct", order_refuse_direct },
	{ "forget", order_forget },
	{ "go", order_go },
};

/* ---------------------------------------------------------------- clients */

static void
carry_out(char *line, char *answer, size_t size)
{
	const char *name, *why = "hang, hang-after, hang-spindle, fail, fail-after, refuse-direct, "
				 "forget, go or stat";
	size_t i;

	name = word(&line);
	if (strcmp(name, "stat") == 0) {
		memcpy(answer, "ok ", 3);
		jobs_counters(answer + 3, size - 3, true);
		return;
	}
	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		if (strcmp(name, orders[i].name) == 0)
			why = orders[i].run(line);
	}
	if (why == NULL)
		snprintf(answer, size, "ok");
	else
		snprintf(answer, size, "error: %s", why);
}

static void *
client_main(void *arg)
{
	int fd = (int)(intptr_t)arg;
	FILE *in = fdopen(fd, "r");
	char line[PATH_MAX + 64], answer[256];

	if (in == NULL) {
		close(fd);
		return (NULL);
	}
	while (fgets(line, sizeof(line), in) != NULL) {
		if (strchr(line, '\n') == NULL && !feof(in))
			break; /* longer than any path */
		line[strcspn(line, "\r\n")] = '\0';
		carry_out(line, answer, sizeof(answer));
		if (dprintf(fd, "%s\n", answer) < 0)
			break;
	}
	fclose(in);
	return (NULL);
}

static int
thread(void *(*run)(void *), void *arg)
{
	pthread_t t;
	int err;

	if ((err = pthread_create(&t, NULL, run, arg)) == 0)
		pthread_detach(t);
	return (-err);
}

static void *
listen_main(void *arg)
{
	int fd;

	for (;;) {
		if ((fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
			sleep(1); /* no descriptors: later perhaps */
		else if (thread(client_main, (void *)(intptr_t)fd) != 0)
			close(fd);
	}
	return (arg);
}

/* ---------------------------------------------------------------- the socket */

/* One without listener is left over from a slowfs that was killed. */
static void
remove_stale(void)
{
	struct stat st;
	int fd;

	if (lstat(address.sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		return;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED)
		unlink(address.sun_path);
	close(fd);
}

int
control_open(const char *path)
{
	mode_t mask;
	int fd, err = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return (-ENAMETOOLONG);
	strcpy(address.sun_path, path);
	remove_stale();
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
		return (-errno);
	mask = umask(0177);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 16) < 0)
		err = -errno;
	umask(mask);
	if (err != 0) {
		close(fd);
		return (err);
	}
	listen_fd = fd;
	return (0);
}

int
control_start(struct fuse_session *se)
{
	session = se;
	return (listen_fd >= 0 ? thread(listen_main, NULL) : 0);
}

void
control_close(void)
{
	if (listen_fd >= 0)
		unlink(address.sun_path);
}

bool
control_forgetting(void)
{
	return (__atomic_load_n(&forgetting, __ATOMIC_SEQ_CST) != 0);
}
