/* server/helper/spawn.c -- starts an application and keeps it running; see
 * server/config/check/spawn.h.
 *
 *   server ===lifeline=== keeper --fork, exec--> application    as server.username
 *                         holds the              descriptor 0 is the
 *                         listening socket       listening socket
 *
 * The keeper is a process in a session of its own, so no signal for the server reaches it.  It ends
 * with the lifeline: when the server does not want the application any more, or has died.  Then the
 * application's process group gets its signal and, SPAWN_GRACE_MS later, SIGKILL.
 *
 * An application that ends is started again.  The pause doubles from 1 s to 60 s; one that ran for
 * 60 s is started at once.  Requests wait in the queue of the listening socket meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/start/listen.h"
#include "io/safe_open.h"
#include "server/config/check/spawn.h"
#include "server/helper/impl.h"

#define SPAWN_GRACE_MS  5000u
#define SPAWN_PAUSE_MS  1000u
#define SPAWN_PAUSE_MAX 60000u
/* for the socket of an application that is ending */
#define SPAWN_BIND_MS 8000u
#define SPAWN_TRY_MS  50

_Static_assert(SPAWN_LINE_MAX <= HELPER_NAME_MAX, "a line is a name");

/* Descriptors of the keeper. */
enum { LIFELINE = 3, LISTENING, SIGNALS };

struct keeper {
	const struct helper_name *name;
	struct spawn spawn;
	char **argv, **env;
	pid_t pid; /* 0: it does not run */
	uint64_t started_ns;
	uint64_t again_ns; /* time of the next start; 0: none */
	uint32_t pause_ms;
	uint64_t kill_ns; /* time of SIGKILL; 0: it is not ending */
	struct stat file; /* of the socket */
	bool has_file;
};

/* ---------------------------------------------------------------- program and environment */

static char *
copy(struct text t)
{
	return (g_strndup(t.p, t.n));
}

/* Words between spaces, as lighttpd; no shell reads them. */
static char **
words_of(struct text command)
{
	GPtrArray *v = g_ptr_array_new();
	struct text word;

	while (text_next(&command, ' ', &word))
		if (word.n != 0)
			g_ptr_array_add(v, copy(word));
	g_ptr_array_add(v, NULL);
	return ((char **)g_ptr_array_free(v, FALSE));
}

static void
copy_variable(char ***env, struct text name)
{
	char *key = copy(name);
	const char *value = getenv(key);

	if (value != NULL)
		*env = g_environ_setenv(*env, key, value, TRUE);
	g_free(key);
}

static char **
environment_of(struct text rest)
{
	char **env = NULL, **whole = g_get_environ(), kind, *eq;
	bool chosen = false;
	struct text t;
	char *pair;

	while (spawn_next(&rest, &kind, &t)) {
		if (kind == 'C') {
			chosen = true;
			copy_variable(&env, t);
			continue;
		}
		pair = copy(t);
		eq = strchr(pair, '=');
		if (kind == 'E' && eq != NULL) {
			*eq = '\0';
			env = g_environ_setenv(env, pair, eq + 1, TRUE);
		}
		g_free(pair);
	}
	if (!chosen) {
		for (; env != NULL && *env != NULL; env++) {
			pair = g_strdup(*env);
			eq = strchr(pair, '=');
			*eq = '\0';
			whole = g_environ_setenv(whole, pair, eq + 1, TRUE);
		}
		env = whole;
	}
	env = g_environ_unsetenv(env, "NOTIFY_SOCKET");
	/* PHP would answer one request at a time and end; lighttpd sets it, too */
	return (g_environ_setenv(env, "PHP_FCGI_CHILDREN", "1", FALSE));
}

/* ---------------------------------------------------------------- the application */

static _Noreturn void
run(const struct keeper *k, pid_t keeper)
{
	int null = open("/dev/null", O_WRONLY);
	sigset_t none;

	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null < 0 || dup2(LISTENING, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    !helper_become(k->name))
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* after the change of user, which clears it */
	if (getppid() != keeper)
		_exit(126);
	(void)syscall(SYS_close_range, 3u, ~0u, 0u);
	execve(k->argv[0], k->argv, k->env);
	_exit(127);
}

static void
say(const char *what, uint64_t number, uint64_t pause_ms)
{
	char line[HELPER_WHY_MAX];
	int n = snprintf(line, sizeof(line), "%s\t%llu\t%llu", what, (unsigned long long)number,
	    (unsigned long long)pause_ms);

	(void)helper_send(LIFELINE, line, (size_t)n, -1); /* a full queue loses log lines */
}

static void
start(struct keeper *k)
{
	pid_t keeper = getpid();

	k->again_ns = 0;
	k->started_ns = clock_mono_ns();
	k->pid = fork();
	if (k->pid == 0)
		run(k, keeper);
	if (k->pid > 0) {
		setpgid(k->pid, k->pid);
		say("started", (uint64_t)k->pid, 0);
		return;
	}
	k->pid = 0;
	k->again_ns = k->started_ns + SPAWN_PAUSE_MAX * NS_PER_MS;
	say("failed", (uint64_t)errno, SPAWN_PAUSE_MAX);
}

/* The application has ended; its children, as those of PHP, end with it. */
static void
ended(struct keeper *k, int status)
{
	uint64_t now = clock_mono_ns(), lived_ms = (now - k->started_ns) / NS_PER_MS;

	kill(-k->pid, SIGKILL);
	k->pid = 0;
	if (k->kill_ns != 0)
		return;
	if (lived_ms >= SPAWN_PAUSE_MAX)
		k->pause_ms = 0;
	else
		k->pause_ms = MIN(MAX(2 * k->pause_ms, SPAWN_PAUSE_MS), SPAWN_PAUSE_MAX);
	k->again_ns = now + k->pause_ms * NS_PER_MS + 1;
	if (WIFSIGNALED(status))
		say("signal", (uint64_t)WTERMSIG(status), k->pause_ms);
	else
		say("status", (uint64_t)WEXITSTATUS(status), k->pause_ms);
}

static void
reap(struct keeper *k)
{
	struct signalfd_siginfo si;
	int status;
	pid_t pid;

	while (read(SIGNALS, &si, sizeof(si)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == k->pid)
			ended(k, status);
}

/* ---------------------------------------------------------------- the keeper */

/* The file of the socket, unless another one has its place by now. */
static void
remove_file(const struct keeper *k)
{
	struct stat now;
	char *path;

	if (!k->has_file)
		return;
	path = g_strndup(k->spawn.address.p + 5, k->spawn.address.n - 5);
	if (lstat(path, &now) == 0 && now.st_ino == k->file.st_ino && now.st_dev == k->file.st_dev)
		(void)safe_unlink(path);
	g_free(path);
}

static int
timeout_of(const struct keeper *k)
{
	uint64_t at = k->kill_ns != 0 ? k->kill_ns : k->again_ns, now = clock_mono_ns();

	if (at == 0)
		return (-1);
	return (at > now ? (int)((at - now) / NS_PER_MS) + 1 : 0);
}

static void
end(struct keeper *k)
{
	remove_file(k); /* before the application ends: another server may bind at once */
	close(LISTENING);
	k->kill_ns = clock_mono_ns() + SPAWN_GRACE_MS * NS_PER_MS;
	if (k->pid != 0)
		kill(-k->pid, k->spawn.signal);
}

/* The end of the lifeline, or any message: during an upgrade two servers hold the lifeline, and the
 * new one wants the application to end. */
static bool
released(void)
{
	char junk[16];

	return (recv(LIFELINE, junk, sizeof(junk), MSG_DONTWAIT) >= 0 ||
		(errno != EAGAIN && errno != EINTR));
}

static _Noreturn void
keep(struct keeper *k)
{
	struct pollfd p[2] = { { .fd = LIFELINE, .events = POLLIN },
		{ .fd = SIGNALS, .events = POLLIN } };

	start(k);
	while (k->kill_ns == 0 || k->pid != 0) {
		if (poll(p, 2, timeout_of(k)) < 0 && errno != EINTR)
			break;
		if (p[1].revents != 0)
			reap(k);
		if (p[0].revents != 0 && k->kill_ns == 0 && released()) {
			p[0].fd = -1;
			end(k);
		}
		if (k->kill_ns != 0 && k->pid != 0 && clock_mono_ns() >= k->kill_ns)
			kill(-k->pid, SIGKILL);
		if (k->again_ns != 0 && k->kill_ns == 0 && clock_mono_ns() >= k->again_ns)
			start(k);
	}
	_exit(0);
}

static _Noreturn void
become_keeper(struct keeper *k, int listening, int lifeline)
{
	sigset_t set;
	int fds[2];

	if (fork() != 0)
		_exit(0);
	setsid();
	prctl(PR_SET_NAME, "accel-keeper");
	(void)setpriority(PRIO_PROCESS, 0, 0);
	fds[0] = fcntl(lifeline, F_DUPFD_CLOEXEC, 16);
	fds[1] = fcntl(listening, F_DUPFD_CLOEXEC, 16);
	sigfillset(&set);
	sigdelset(&set, SIGKILL);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (fds[0] < 0 || fds[1] < 0 || dup3(fds[0], LIFELINE, O_CLOEXEC) < 0 ||
	    dup3(fds[1], LISTENING, O_CLOEXEC) < 0)
		_exit(1);
	fds[0] = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fds[0] < 0 || (fds[0] != SIGNALS && dup3(fds[0], SIGNALS, O_CLOEXEC) < 0))
		_exit(1);
	(void)syscall(SYS_close_range, (unsigned)SIGNALS + 1, ~0u, 0u);
	k->argv = words_of(k->spawn.command);
	k->env = environment_of(k->spawn.rest);
	keep(k);
}

/* ---------------------------------------------------------------- starting */

/* The socket of an application that ends is free soon. */
static int
bind_socket(const struct keeper *k, int *fd, const char **why)
{
	uint64_t until = clock_mono_ns() + SPAWN_BIND_MS * NS_PER_MS;
	char *address = copy(k->spawn.address);
	struct listen_conf lc = {
		.name = address,
		.backlog = k->spawn.backlog,
		.set_mode = true,
		.mode = 0660,
		.set_owner = k->name->set_owner,
		.uid = k->name->uid,
		.gid = k->name->gid,
	};
	int err;

	while ((err = listen_open(&lc, fd, why)) == -EADDRINUSE && clock_mono_ns() < until)
		(void)poll(NULL, 0, SPAWN_TRY_MS);
	g_free(address);
	return (err);
}

static int
check_program(const struct keeper *k, const char **why)
{
	struct text command = k->spawn.command, program = TEXT_NONE;
	char *path;
	int err;

	(void)text_next(&command, ' ', &program);
	path = copy(program);
	err = access(path, X_OK) == 0 ? 0 : -errno;
	g_free(path);
	if (err != 0)
		*why = "the program of bin-path is missing or not executable";
	return (err);
}

int
helper_spawn(const struct helper_name *n, int reply, const char **why)
{
	static struct keeper k;
	const int32_t ok = 0;
	int fd, err;

	k.name = n;
	if (!spawn_parse(text_of(n->name), &k.spawn))
		return (-EINVAL);
	err = check_program(&k, why);
	if (err == 0)
		err = bind_socket(&k, &fd, why);
	/* applications wait in accept(2) */
	if (err == 0 && fcntl(fd, F_SETFL, 0) != 0)
		err = -errno;
	if (err != 0)
		return (err);
	if (text_starts(k.spawn.address, TEXT("unix:/"))) {
		char *path = g_strndup(k.spawn.address.p + 5, k.spawn.address.n - 5);

		k.has_file = lstat(path, &k.file) == 0;
		g_free(path);
	}
	/* first: what the keeper says comes after it */
	err = helper_send(reply, &ok, sizeof(ok), -1);
	if (err == 0)
		become_keeper(&k, fd, reply);
	return (err);
}
