/* t/unit/io/sandbox.c -- what a confined process can do, and what it cannot. */
#include "t/unit/io/sandbox_test.h"

static int
unlink_below(const char *parent, const char *name)
{
	g_autofree char *path = below(parent, name);
	int err = unlink(path) < 0 ? errno : 0;

	return (err);
}

static int
reads_root(void)
{
	return (open_below(root, "file", O_RDONLY));
}

static int
reads_by_link(void)
{
	return (open_below(linked, "file", O_RDONLY));
}

static int
lists_root(void)
{
	return (open_below(root, "mnt", O_RDONLY | O_DIRECTORY));
}

static int
reads_proc(void)
{
	return (open_below("/proc/self", "environ", O_RDONLY));
}

static int
writes_null(void)
{
	return (open_below("/dev", "null", O_WRONLY));
}

static int
reads_passwd(void)
{
	return (open_below("/etc", "passwd", O_RDONLY));
}

static int
lists_outside(void)
{
	return (open_below(dir, "outside", O_RDONLY | O_DIRECTORY));
}

static int
reads_log(void)
{
	return (open_below(dir, "log/log", O_RDONLY));
}

static int
reads_null(void)
{
	return (open_below("/dev", "null", O_RDONLY));
}

static int
writes_root(void)
{
	return (open_below(root, "file", O_WRONLY));
}

static int
empties_root(void)
{
	return (open_below(root, "file", O_WRONLY | O_TRUNC));
}

static int
makes_in_root(void)
{
	return (open_below(root, "new", O_WRONLY | O_CREAT));
}

static int
makes_outside(void)
{
	return (open_below(dir, "outside/new", O_WRONLY | O_CREAT));
}

static int
makes_log(void)
{
	return (open_below(dir, "log/log", O_WRONLY | O_CREAT | O_APPEND));
}

static int
makes_by_socket(void)
{
	return (open_below(dir, "run/new", O_WRONLY | O_CREAT));
}

static int
removes_in_root(void)
{
	return (unlink_below(root, "file"));
}

static int
removes_log(void)
{
	return (unlink_below(dir, "log/log"));
}

static int
removes_socket(void)
{
	return (unlink_below(dir, "run/socket"));
}

static int
names_outside(void)
{
	return (stat("/etc/passwd", &(struct stat){ 0 }) < 0 ? errno : 0);
}

static int
makes_in_spool(void)
{
	return (open_below(spool, "x", O_RDWR | O_CREAT | O_EXCL));
}

static int
reads_spool(void)
{
	return (open_below(spool, "x", O_RDWR | O_TRUNC));
}

static int
removes_spooled(void)
{
	return (unlink_below(spool, "x"));
}

/* As a reload asks: by the directories themselves.  A missing path, or one that is not a directory,
 * is an error of the code that opens it. */
static int
reaches(void)
{
	const struct {
		const char *name;
		bool reads;
	} table[] = {
		{ "root", true },
		{ "root/mnt", true },
		{ "link", true },
		{ "link/mnt/..", true },
		{ "spool", false },
		{ "outside", false },
		{ "", false },
		{ "root/..", false },
		{ "missing", true },
		{ "outside/file", false },
	};

	for (guint i = 0; i < G_N_ELEMENTS(table); i++) {
		g_autofree char *path = below(dir, table[i].name);
		bool reads = sandbox_allows(&got, SANDBOX_READ, path);

		if (reads != table[i].reads)
			return ((int)i + 1);
	}
	return (sandbox_allows(&got, SANDBOX_READ, "/") ||
			sandbox_allows(&got, SANDBOX_READ, "/etc") ||
			!sandbox_allows(&got, SANDBOX_SPOOL, spool) ||
			sandbox_allows(&got, SANDBOX_SPOOL, root)
		    ? UNEXPECTED
		    : 0);
}

/* Runs a function in a sandboxed child; its result comes back as the exit status of the child. */
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

/* ---- tests */

static void
reads_what_it_serves(void)
{
	if (!usable())
		return;
	g_assert_cmpint(child(reads_root), ==, 0);
	g_assert_cmpint(child(reads_by_link), ==, 0);
	g_assert_cmpint(child(lists_root), ==, 0);
	g_assert_cmpint(child(writes_null), ==, 0); /* into which it reads */
	g_assert_cmpint(child(names_outside), ==, 0);
}

static void
reads_nothing_else(void)
{
	if (!usable())
		return;
	/* without it, it could */
	g_assert_cmpint(open_below(dir, "outside/file", O_RDONLY), ==, 0);
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
	/* the first one, or the next after rotation */
	g_assert_cmpint(child(makes_log), ==, 0);
	g_assert_cmpint(child(makes_log), ==, 0); /* the one that is there */
	g_assert_cmpint(child(removes_log), ==, EACCES);
	g_assert_cmpint(child(removes_socket), ==, 0);
	g_assert_false(g_file_test(socket_file, G_FILE_TEST_EXISTS));
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_data_func("/sandbox/reads-what-it-serves", (gconstpointer)reads_what_it_serves,
	    test);
	g_test_add_data_func("/sandbox/reads-nothing-else", (gconstpointer)reads_nothing_else,
	    test);
	g_test_add_data_func("/sandbox/writes-nothing", (gconstpointer)writes_nothing, test);
	g_test_add_data_func("/sandbox/knows-what-it-reaches", (gconstpointer)knows_what_it_reaches,
	    test);
	g_test_add_data_func("/sandbox/log-and-socket", (gconstpointer)log_and_socket, test);
	return (tests_run());
}
