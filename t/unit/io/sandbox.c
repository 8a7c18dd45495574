/* What a confined process can do and what it cannot: each is tried by a child that enters the sandbox first. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "io/sandbox.h"
#include "io/sandbox_impl.h"

#define UNEXPECTED 255			/* no errno */

static char *dir, *root, *linked, *log_file, *socket_file, *spool;

static char *
below(const char *parent, const char *name)
{
	return (g_build_filename(parent, name, NULL));
}

static char *
make_dir(const char *parent, const char *name)
{
	char *path = below(parent, name);

	g_assert_cmpint(g_mkdir(path, 0755), ==, 0);
	return (path);
}

static void
put(const char *parent, const char *name)
{
	char *path = below(parent, name);

	g_assert_true(g_file_set_contents(path, "x", 1, NULL));
	g_free(path);
}

/* dir/{root/{file,mnt/},link -> root,outside/file,log/log,run/socket,spool/} */
static void
up(void)
{
	char *outside, *log, *run;

	dir = g_dir_make_tmp("sandbox-XXXXXX", NULL);
	g_assert_nonnull(dir);
	root = make_dir(dir, "root");
	linked = below(dir, "link");
	g_assert_cmpint(symlink("root", linked), ==, 0);
	put(root, "file");
	g_free(make_dir(root, "mnt"));
	outside = make_dir(dir, "outside");
	put(outside, "file");
	log = make_dir(dir, "log");
	log_file = below(log, "log");
	run = make_dir(dir, "run");
	socket_file = below(run, "socket");
	spool = make_dir(dir, "spool");
	put(run, "socket");
	g_free(outside);
	g_free(log);
	g_free(run);
}

static void
down(void)
{
	char *rm = g_strdup_printf("rm -rf '%s'", dir);

	g_assert_cmpint(g_spawn_command_line_sync(rm, NULL, NULL, NULL, NULL), ==, TRUE);
	g_free(rm);
	g_free(dir);
	g_free(root);
	g_free(linked);
	g_free(log_file);
	g_free(socket_file);
	g_free(spool);
}

/* ---- what a child tries: 0 or errno */

static struct sandbox got;

static int
enter(void)
{
	const struct sandbox_path paths[] = {
		{ linked, SANDBOX_READ }, { "/dev/null", SANDBOX_WRITE }, { log_file, SANDBOX_APPEND | SANDBOX_BESIDE },
		{ socket_file, SANDBOX_REMOVE | SANDBOX_BESIDE }, { spool, SANDBOX_SPOOL }, { "/nonexistent", SANDBOX_READ | SANDBOX_OPTIONAL },
		{ NULL }
	};
	char why[256];

	return (sandbox_enter(SANDBOX_ACCELERATOR, paths, &got, why, sizeof(why)) == 0 && got.landlock > 0 && got.seccomp);
}

static int
open_below(const char *parent, const char *name, int flags)
{
	char *path = below(parent, name);
	int fd = open(path, flags, 0644), err = fd < 0 ? errno : 0;
	char byte;

	if (fd >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECTORY) && read(fd, &byte, 1) != 1)
		err = UNEXPECTED;
	if (fd >= 0)
		close(fd);
	g_free(path);
	return (err);
}

static int
unlink_below(const char *parent, const char *name)
{
	char *path = below(parent, name);
	int err = unlink(path) < 0 ? errno : 0;

	g_free(path);
	return (err);
}

static int reads_root(void)	{ return (open_below(root, "file", O_RDONLY)); }
static int reads_by_link(void)	{ return (open_below(linked, "file", O_RDONLY)); }
static int lists_root(void)	{ return (open_below(root, "mnt", O_RDONLY | O_DIRECTORY)); }
static int reads_proc(void)	{ return (open_below("/proc/self", "environ", O_RDONLY)); }
static int writes_null(void)	{ return (open_below("/dev", "null", O_WRONLY)); }
static int reads_outside(void)	{ return (open_below(dir, "outside/file", O_RDONLY)); }
static int reads_passwd(void)	{ return (open_below("/etc", "passwd", O_RDONLY)); }
static int lists_outside(void)	{ return (open_below(dir, "outside", O_RDONLY | O_DIRECTORY)); }
static int reads_log(void)	{ return (open_below(dir, "log/log", O_RDONLY)); }
static int reads_null(void)	{ return (open_below("/dev", "null", O_RDONLY)); }
static int writes_root(void)	{ return (open_below(root, "file", O_WRONLY)); }
static int empties_root(void)	{ return (open_below(root, "file", O_WRONLY | O_TRUNC)); }
static int makes_in_root(void)	{ return (open_below(root, "new", O_WRONLY | O_CREAT)); }
static int makes_outside(void)	{ return (open_below(dir, "outside/new", O_WRONLY | O_CREAT)); }
static int makes_log(void)	{ return (open_below(dir, "log/log", O_WRONLY | O_CREAT | O_APPEND)); }
static int makes_by_socket(void) { return (open_below(dir, "run/new", O_WRONLY | O_CREAT)); }
static int removes_in_root(void) { return (unlink_below(root, "file")); }
static int removes_log(void)	{ return (unlink_below(dir, "log/log")); }
static int removes_socket(void)	{ return (unlink_below(dir, "run/socket")); }
static int names_outside(void)	{ return (stat("/etc/passwd", &(struct stat){ 0 }) < 0 ? errno : 0); }

static int makes_in_spool(void)	{ return (open_below(spool, "x", O_RDWR | O_CREAT | O_EXCL)); }
static int reads_spool(void)	{ return (open_below(spool, "x", O_RDWR | O_TRUNC)); }
static int removes_spooled(void) { return (unlink_below(spool, "x")); }

/* As a reload asks: by the directories themselves. */
static int
reaches(void)
{
	const struct { const char *name; bool reads; } table[] = {
		{ "root", true }, { "root/mnt", true }, { "link", true }, { "link/mnt/..", true }, { "spool", false }, { "outside", false }, { "", false },
		{ "root/..", false }, { "missing", true },
	};

	for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
		char *path = below(dir, table[i].name);
		bool reads = sandbox_allows(&got, SANDBOX_READ, path);

		g_free(path);
		if (reads != table[i].reads)
			return ((int)i + 1);
	}
	return (sandbox_allows(&got, SANDBOX_READ, "/") || sandbox_allows(&got, SANDBOX_READ, "/etc") || !sandbox_allows(&got, SANDBOX_SPOOL, spool) ||
	    sandbox_allows(&got, SANDBOX_SPOOL, root) ? UNEXPECTED : 0);
}

/* Its result as exit status. */
static int
child(int (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(enter() ? what() : UNEXPECTED);
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	g_assert_true(WIFEXITED(status));
	return (WEXITSTATUS(status));
}

/* Asked of the kernel, not of what is tested.  0 or less: none here. */
static long
abi(void)
{
	return (syscall(444 /* landlock_create_ruleset */, NULL, 0, 1));
}

static bool
usable(void)
{
	if (abi() > 0)
		return (true);
	g_test_skip("this kernel has no Landlock, or a filter forbids it");
	return (false);
}

/* ---- tests */

static void
reads_what_it_serves(void)
{
	if (!usable())
		return;
	g_assert_cmpint(child(reads_root), ==, 0);
	g_assert_cmpint(child(reads_by_link), ==, 0);
	g_assert_cmpint(child(lists_root), ==, 0);
	g_assert_cmpint(child(writes_null), ==, 0);	/* into which it reads */
	g_assert_cmpint(child(names_outside), ==, 0);
}

static void
reads_nothing_else(void)
{
	if (!usable())
		return;
	g_assert_cmpint(open_below(dir, "outside/file", O_RDONLY), ==, 0); /* without it, it could */
	g_assert_cmpint(child(reads_outside), ==, EACCES);
	g_assert_cmpint(child(reads_passwd), ==, EACCES);
	g_assert_cmpint(child(lists_outside), ==, EACCES);
	g_assert_cmpint(child(reads_proc), ==, SANITIZED ? 0 : EACCES);
	g_assert_cmpint(child(reads_null), ==, EACCES);
	g_assert_cmpint(child(makes_log), ==, 0);
	g_assert_cmpint(child(reads_log), ==, EACCES);
}

static void
writes_nothing(void)
{
	if (!usable())
		return;
	g_assert_cmpint(child(writes_root), ==, EACCES);
	g_assert_cmpint(child(empties_root), ==, EACCES);
	g_assert_cmpint(child(makes_in_root), ==, EACCES);
	g_assert_cmpint(child(removes_in_root), ==, EACCES);
	g_assert_cmpint(child(makes_outside), ==, EACCES);
	g_assert_cmpint(child(makes_by_socket), ==, EACCES);
	g_assert_cmpint(child(makes_in_spool), ==, 0);
	g_assert_cmpint(child(reads_spool), ==, 0);
	g_assert_cmpint(child(removes_spooled), ==, 0);
}

static void
knows_what_it_reaches(void)
{
	if (usable())
		g_assert_cmpint(child(reaches), ==, 0);
}

static void
log_and_socket(void)
{
	if (!usable())
		return;
	g_assert_cmpint(child(makes_log), ==, 0);	/* the first one, or the next after rotation */
	g_assert_cmpint(child(makes_log), ==, 0);	/* the one that is there */
	g_assert_cmpint(child(removes_log), ==, EACCES);
	g_assert_cmpint(child(removes_socket), ==, 0);
	g_assert_false(g_file_test(socket_file, G_FILE_TEST_EXISTS));
}

/* A confined child waits until something was mounted below its root, then reads there.  Its mounts are its own. */
static int
mounted_later(void)
{
	char *from = below(dir, "outside"), *to = below(root, "mnt");
	int go[2], status;
	char byte = 0;
	pid_t pid;

	g_assert_cmpint(pipe(go), ==, 0);
	pid = fork();
	if (pid == 0)
		_exit(enter() && read(go[0], &byte, 1) == 1 ? open_below(root, "mnt/file", O_RDONLY) : UNEXPECTED);
	status = mount(from, to, NULL, MS_BIND, NULL) < 0 ? errno : 0;
	g_assert_cmpint(write(go[1], &byte, 1), ==, 1);
	if (status != 0)
		return (UNEXPECTED);
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	return (WEXITSTATUS(status));
}

static bool
own_mounts(void)
{
	if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return (false);
	return (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

static void
mounts_below_the_root(void)
{
	int status;
	pid_t pid;

	if (!usable())
		return;
	pid = fork();
	if (pid == 0)
		_exit(own_mounts() ? mounted_later() : EPERM);
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	if (WEXITSTATUS(status) == EPERM)
		g_test_skip("mounting is not allowed here");
	else
		g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

/* Nothing but the process itself is confined then, so a child says it. */
static int
without_paths(void)
{
	char why[256];

	if (sandbox_enter(SANDBOX_ACCELERATOR, NULL, &got, why, sizeof(why)) != 0 || got.landlock != 0)
		return (UNEXPECTED);
	return (reads_outside());
}

static int
path_missing(void)
{
	const struct sandbox_path paths[] = { { root, SANDBOX_READ }, { "/nonexistent/root", SANDBOX_READ }, { NULL } };
	char why[256];
	int err = sandbox_enter(SANDBOX_ACCELERATOR, paths, &got, why, sizeof(why));

	if (strcmp(why, "Landlock: /nonexistent/root: No such file or directory") != 0)
		return (UNEXPECTED);
	return (-err);
}

static int
free_child(int (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(what());
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	return (WEXITSTATUS(status));
}

static void
without_any_paths(void)
{
	g_assert_cmpint(free_child(without_paths), ==, 0);
}

static void
names_that_lead_nowhere(void)
{
	if (usable())
		g_assert_cmpint(free_child(path_missing), ==, ENOENT);
}

static void
test(gconstpointer fn)
{
	up();
	((void (*)(void))fn)();
	down();
}

/* ---- what is told */

static void
keep(void *line, struct text t)
{
	g_string_append_len(line, t.p, (gssize)t.n);
}

static void
tells(struct sandbox entered, bool wanted, const char *what)
{
	GString *line = g_string_new(NULL);

	log_set_sink(keep, line);
	sandbox_log(&entered, wanted);
	log_set_sink(NULL, NULL);
	g_assert_nonnull(strstr(line->str, what));
	g_assert_true(strchr(line->str, '\n') == line->str + line->len - 1);
	g_string_free(line, TRUE);
}

static void
one_line_says_so(void)
{
	log_set_level(LOG_DEBUG);
	tells((struct sandbox){ 7, true }, true, "level=info ev=sandbox.entered names=landlock abi=7 calls=seccomp\n");
	tells((struct sandbox){ 0, true }, false, "level=debug ev=sandbox.entered names=\"not confined\" abi=0 calls=seccomp\n");
	tells((struct sandbox){ 0, true }, true, "level=warn ev=sandbox.partial names=\"this kernel has no Landlock\" abi=0 calls=seccomp\n");
	tells((struct sandbox){ 7, false }, true, "level=warn ev=sandbox.partial names=landlock abi=7 calls=\"this kernel has no seccomp filters\"\n");
	log_set_level(LOG_INFO);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/sandbox/reads-what-it-serves", (gconstpointer)reads_what_it_serves, test);
	g_test_add_data_func("/sandbox/reads-nothing-else", (gconstpointer)reads_nothing_else, test);
	g_test_add_data_func("/sandbox/writes-nothing", (gconstpointer)writes_nothing, test);
	g_test_add_data_func("/sandbox/knows-what-it-reaches", (gconstpointer)knows_what_it_reaches, test);
	g_test_add_data_func("/sandbox/log-and-socket", (gconstpointer)log_and_socket, test);
	g_test_add_data_func("/sandbox/mounts-below-the-root", (gconstpointer)mounts_below_the_root, test);
	g_test_add_data_func("/sandbox/without-paths", (gconstpointer)without_any_paths, test);
	g_test_add_data_func("/sandbox/names-that-lead-nowhere", (gconstpointer)names_that_lead_nowhere, test);
	g_test_add_data_func("/sandbox/one-line-says-so", (gconstpointer)one_line_says_so, test);
	return (g_test_run());
}
