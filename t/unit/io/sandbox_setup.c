/* t/unit/io/sandbox_setup.c -- what a sandbox needs: mounts of its own, paths that exist, one line
 * in the log. */
#include "t/unit/io/sandbox_test.h"

/* A confined child waits until something was mounted below its root, then reads there.  Its mounts
 * are its own. */
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
		_exit(enter() && read(go[0], &byte, 1) == 1 ? open_below(root, "mnt/file", O_RDONLY)
							    : UNEXPECTED);
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

	if (sandbox_enter(SANDBOX_ACCELERATOR, NULL, &got, why, sizeof(why)) != 0 ||
	    got.landlock != 0)
		return (UNEXPECTED);
	return (reads_outside());
}

static int
path_missing(void)
{
	const struct sandbox_path paths[] = { { root, SANDBOX_READ },
		{ "/nonexistent/root", SANDBOX_READ }, { NULL } };
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

/* ---- the log line */

static void
keep(void *line, struct text t)
{
	g_string_append_len(line, t.p, (gssize)t.n);
}

static void
tells(struct sandbox entered, bool wanted, const char *what)
{
	g_autoptr(GString) line = g_string_new(NULL);

	log_set_sink(keep, line);
	sandbox_log(&entered, wanted);
	log_set_sink(NULL, NULL);
	if (what == NULL) {
		g_assert_cmpuint(line->len, ==, 0);
	} else {
		g_assert_nonnull(strstr(line->str, what));
		g_assert_true(strchr(line->str, '\n') == line->str + line->len - 1);
	}
}

static void
one_line_says_so(void)
{
	tells((struct sandbox){ 7, true }, true,
	    "level=info ev=sandbox.entered names=landlock abi=7 calls=seccomp\n");
	tells((struct sandbox){ 0, true }, false, NULL);
	tells((struct sandbox){ 0, false }, false,
	    "level=warn ev=sandbox.partial names=\"not confined\" abi=0 "
	    "calls=\"this kernel has no seccomp filters\"\n");
	tells((struct sandbox){ 0, true }, true,
	    "level=warn ev=sandbox.partial names=\"this kernel has no Landlock\" abi=0 "
	    "calls=seccomp\n");
	tells((struct sandbox){ 7, false }, true,
	    "level=warn ev=sandbox.partial names=landlock abi=7 calls=\"this kernel has no seccomp "
	    "filters\"\n");
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/sandbox/mounts-below-the-root", (gconstpointer)mounts_below_the_root,
	    test);
	g_test_add_data_func("/sandbox/without-paths", (gconstpointer)without_any_paths, test);
	g_test_add_data_func("/sandbox/names-that-lead-nowhere",
	    (gconstpointer)names_that_lead_nowhere, test);
	g_test_add_data_func("/sandbox/one-line-says-so", (gconstpointer)one_line_says_so, test);
	return (tests_run());
}
