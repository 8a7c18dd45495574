/* t/unit/io/logfile.c -- lines are whole or absent, and no writer waits for the disk. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "io/log/logfile.h"
#include "t/unit/test.h"

#define N_HANGING 24

static char *dir, *path;

static char *
contents(const char *file)
{
	char *text = NULL;

	g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
	return (text);
}

static void *
writer(void *arg)
{
	char line[64];
	int i, n;

	for (i = 0; i < 2000; i++) {
		n = snprintf(line, sizeof(line), "line %d of a writer\n", i);
		logfile_line(arg, (struct text){ line, (size_t)n });
	}
	return (NULL);
}

TEST("/logfile/writers")
{
	struct logfile *lf;
	pthread_t t[4];
	char *text, **lines;
	int i;

	g_assert_cmpint(logfile_open(path, NULL, NULL, &lf), ==, 0);
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, writer, lf);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	logfile_close(lf);
	text = contents(path);
	lines = g_strsplit(text, "\n", -1);
	g_assert_cmpuint(g_strv_length(lines), ==, 8001);
	for (i = 0; i < 8000; i++)
		g_assert_true(g_str_has_prefix(lines[i], "line ") &&
			      g_str_has_suffix(lines[i], " of a writer"));
	g_strfreev(lines);
	g_free(text);
}

static void
must_not_fail(const char *unused, int err)
{
	g_assert_not_reached();
}

static int noted; /* written by the thread of the log, read after logfile_close() */

static void
note_error(const char *failed, int err)
{
	g_assert_true(g_str_has_suffix(failed, "/gone/log"));
	noted = err;
}

TEST("/logfile/reopen")
{
	char *old = g_strconcat(path, ".1", NULL), *text;
	struct logfile *lf;

	g_unlink(path);
	g_assert_cmpint(logfile_open(path, NULL, NULL, &lf), ==, 0);
	logfile_line(lf, TEXT("before\n"));
	while (text = contents(path), text[0] == '\0') {
		g_free(text);
		g_usleep(1000);
	}
	g_free(text);
	g_assert_cmpint(g_rename(path, old), ==, 0);
	logfile_reopen(lf, must_not_fail);
	logfile_line(lf, TEXT("after\n"));
	logfile_close(lf);
	text = contents(old);
	g_assert_cmpstr(text, ==, "before\n");
	g_free(text);
	text = contents(path);
	g_assert_cmpstr(text, ==, "after\n");
	g_free(text);
	g_free(old);
}

/* The lines of x and those that were reported as dropped. */
static size_t
count_lines(const GString *all, size_t len)
{
	const char *p = all->str, *end = all->str + all->len, *lines;
	size_t n = 0;

	while (p < end) {
		if (*p == 'x') { /* whole lines only */
			g_assert_cmpint(p[len - 1], ==, '\n');
			p += len;
			n++;
			continue;
		}
		g_assert_true(g_str_has_prefix(p, "ts="));
		lines = strstr(p, " lines=");
		g_assert_nonnull(lines);
		n += strtoul(lines + strlen(" lines="), NULL, 10);
		p = strchr(lines, '\n') + 1;
	}
	return (n);
}

static GString *told; /* the error log; of the thread of the log until logfile_close() */
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER; /* ThreadSanitizer sees no GMutex */

static void
keep_told(void *arg, struct text line)
{
	pthread_mutex_lock(&telling);
	g_string_append_len(told, line.p, (gssize)line.n);
	pthread_mutex_unlock(&telling);
}

static size_t
count_told(size_t len)
{
	size_t n;

	pthread_mutex_lock(&telling);
	n = count_lines(told, len);
	pthread_mutex_unlock(&telling);
	return (n);
}

/* A pipe without a reader stands for a disk that takes no bytes.  Each line arrives or is counted
 * as dropped, in one report or in several.  The reports are in the error log, which may be this
 * log. */
static void
full(bool is_errorlog)
{
	char *fifo = g_build_filename(dir, "fifo", NULL), line[1024];
	GString *all = g_string_new(NULL);
	struct logfile *lf;
	uint64_t begin, dropped = logfile_dropped();
	size_t counted = 0;
	ssize_t n;
	int rd, i;

	g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
	rd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	g_assert_cmpint(logfile_open(fifo, NULL, NULL, &lf), ==, 0);
	told = g_string_new(NULL);
	log_set_sink(is_errorlog ? logfile_line : keep_told, is_errorlog ? lf : NULL);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	begin = clock_mono_ns();
	for (i = 0; i < 4096; i++)
		logfile_line(lf, (struct text){ line, sizeof(line) });
	g_assert_cmpuint(clock_mono_ns() - begin, <, NS_PER_S);
	for (i = 0; i < 20000 && counted < 4096; i++) { /* the disk takes bytes again */
		n = read(rd, line, sizeof(line));
		if (n > 0)
			g_string_append_len(all, line, n);
		else
			g_usleep(1000);
		if (n <= 0 && g_str_has_suffix(all->str, "\n"))
			counted = count_lines(all, sizeof(line)) + count_told(sizeof(line));
	}
	g_assert_cmpuint(counted, ==, 4096);
	g_assert_true((strstr(all->str, "ev=log.dropped path=") != NULL) == is_errorlog);
	g_assert_true((strstr(told->str, "ev=log.dropped path=") != NULL) == !is_errorlog);
	g_assert_cmpuint(logfile_dropped() - dropped, >, 0);
	close(rd);
	log_set_sink(NULL, NULL);
	logfile_close(lf);
	g_string_free(all, true);
	g_string_free(told, true);
	g_unlink(fifo);
	g_free(fifo);
}

TEST("/logfile/full")
{
	full(true);
	full(false);
}

/* Lines that wait for a full disk go to the new file, which is elsewhere. */
TEST("/logfile/full-reopen")
{
	struct logfile *lf;
	char *text;
	int i;

	g_unlink(path);
	g_assert_cmpint(symlink("/dev/full", path), ==, 0);
	g_assert_cmpint(logfile_open(path, NULL, NULL, &lf), ==, 0);
	logfile_line(lf, TEXT("kept\n"));
	g_usleep(100000); /* most likely it has been tried by then; the test holds either way */
	g_unlink(path);
	logfile_reopen(lf, must_not_fail);
	for (i = 0; i < 5000 && !g_file_test(path, G_FILE_TEST_EXISTS); i++)
		g_usleep(1000);
	text = contents(path);
	for (; i < 5000 && text[0] == '\0'; i++) {
		g_free(text);
		g_usleep(1000);
		text = contents(path);
	}
	g_assert_cmpstr(text, ==, "kept\n");
	g_free(text);
	logfile_close(lf);
}

TEST("/logfile/errors")
{
	struct logfile *lf;

	g_autofree char *fifo = g_build_filename(dir, "unread", NULL);

	g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
	g_assert_cmpint(logfile_open(fifo, NULL, NULL, &lf), ==, -ENXIO);
	g_unlink(fifo);
	g_assert_cmpint(logfile_open("/nowhere/at/all", NULL, NULL, &lf), ==, -ENOENT);
	g_assert_cmpint(logfile_open(NULL, NULL, NULL, &lf), ==, 0);
	logfile_reopen(lf, NULL);
	logfile_close(lf);
}

/* The directory is gone: the old file stays open, and the caller gets the error. */
TEST("/logfile/reopen-fails")
{
	g_autofree char *gone = g_build_filename(dir, "gone", NULL),
			*there = g_build_filename(gone, "log", NULL);
	char *moved = g_build_filename(dir, "moved", NULL),
	     *now = g_build_filename(moved, "log", NULL), *text;
	struct logfile *lf;

	g_assert_cmpint(g_mkdir(gone, 0755), ==, 0);
	g_assert_cmpint(logfile_open(there, NULL, NULL, &lf), ==, 0);
	g_assert_cmpint(g_rename(gone, moved), ==, 0);
	logfile_reopen(lf, note_error);
	logfile_line(lf, TEXT("after\n"));
	logfile_close(lf);
	g_assert_cmpint(noted, ==, -ENOENT);
	g_assert_true(g_file_get_contents(now, &text, NULL, NULL));
	g_assert_cmpstr(text, ==, "after\n");
	g_free(text);
	g_unlink(now);
	g_rmdir(moved);
	g_free(moved);
	g_free(now);
}

static int
hanging_open(void *arg, const char *name)
{
	if (g_atomic_int_add((gint *)arg, 1) < N_HANGING)
		return (open("/dev/null", O_WRONLY | O_CLOEXEC));
	for (;;)
		pause();
}

/* The main thread of a server closes them, and its service manager watches it. */
TEST("/logfile/all-hang")
{
	struct logfile *lf[N_HANGING];
	int64_t begun = g_get_monotonic_time();
	static gint opened;
	int i;

	for (i = 0; i < N_HANGING; i++)
		g_assert_cmpint(logfile_open(path, hanging_open, &opened, &lf[i]), ==, 0);

	for (i = 0; i < N_HANGING; i++)
		logfile_reopen(lf[i], NULL);
	while (g_atomic_int_get(&opened) < 2 * N_HANGING)
		g_usleep(1000);
	for (i = 0; i < N_HANGING; i++)
		logfile_stop(lf[i]);
	for (i = 0; i < N_HANGING; i++)
		logfile_close(lf[i]);
	g_assert_cmpint(g_get_monotonic_time() - begun, <, N_HANGING * G_USEC_PER_SEC / 2);
}

static int
packet_open(void *arg, const char *name)
{
	return (*(int *)arg);
}

/* Lines that come one by one leave together: the thread does not wake for each.  A pipe of packets
 * shows each write(2). */
TEST("/logfile/gathers")
{
	enum { LINES = 200, GAP_US = 500 };
	struct logfile *lf;
	char buf[LINES * 16];
	int p[2], i, writes = 0;
	ssize_t n;

	g_assert_cmpint(pipe2(p, O_DIRECT | O_CLOEXEC), ==, 0);
	/* a page for each packet */
	g_assert_cmpint(fcntl(p[1], F_SETPIPE_SZ, LINES << 12), >=, LINES << 12);
	g_assert_cmpint(logfile_open(path, packet_open, &p[1], &lf), ==, 0);
	for (i = 0; i < LINES; i++) {
		logfile_line(lf, (struct text){ "a line\n", 7 });
		g_usleep(GAP_US);
	}
	logfile_close(lf); /* and the pipe */
	while ((n = read(p[0], buf, sizeof(buf))) > 0)
		writes++;
	g_assert_cmpint(writes, >, 0);
	g_assert_cmpint(writes, <, LINES / 2);
	close(p[0]);
}

int
main(int argc, char **argv)
{
	char *fifo;
	int res;

	g_test_init(&argc, &argv, NULL);
	dir = g_dir_make_tmp("io-log-XXXXXX", NULL);
	path = g_build_filename(dir, "log", NULL);
	res = tests_run();
	fifo = g_build_filename(dir, "fifo", NULL);
	g_unlink(fifo);
	g_unlink(path);
	g_free(fifo);
	fifo = g_strconcat(path, ".1", NULL);
	g_unlink(fifo);
	g_free(fifo);
	g_rmdir(dir);
	g_free(path);
	g_free(dir);
	return (res);
}
