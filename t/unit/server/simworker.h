/* t/unit/server/simworker.h -- a worker on a simulated loop, its clients, and a small file system.
 *
 *   client() --say("GET ...")--> worker --IO_OPEN, IO_READ--> disk() --> heard(client)
 *
 * Nothing happens by itself but closes: a test says what arrives, when the disk answers and what
 * a socket takes.
 */
#ifndef SIMWORKER_H
#define SIMWORKER_H

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include "base/clock.h"
#include "base/log.h"
#include "io/engine.h"
#include "io/loop/sim.h"
#include "server/config/config.h"
#include "server/config/resources.h"
#include "server/conn/conn.h"
#include "server/module/rules.h"
#include "server/status/counters.h"
#include "server/worker/worker.h"
#include "t/unit/test.h"

#define HOST         "Host: a\r\n"
#define GET(path)    "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define LISTEN_FD    400
#define FIRST_CLIENT 600
#define FIRST_FILE   5000
#define FIRST_TEMP   9000
#define TEMPS        64

static struct io *io;
static struct worker *w;
static struct config *config;
static struct resources *resources;
static struct counters_list counters_list;
static char *dir;
static GString *logged;
static struct logfile *access_file;
static unsigned clients, files, temps;
static struct buf temp[TEMPS]; /* bytes that were written to temporary files */
static char m_bytes[3001];     /* of a file that is too long to be copied beside its head */
/* the process that runs programs of cgi.assign; NULL: none */
static const struct backends *programs;

static void
log_collect(void *arg, struct text line)
{
	g_string_append_len(logged, line.p, (gssize)line.n);
}

static int
the_access_log(void *arg, const char *path, struct logfile **log)
{
	*log = access_file;
	return (0);
}

static struct listener listeners[2] = {
	{ LISTEN_FD, "127.0.0.1:80" },
	{ LISTEN_FD + 1, "127.0.0.1:81" },
};

/* lines: further directives.  A listener is there only if the test asks for it. */
static void
up_with(const char *lines, unsigned nlisteners, unsigned max_conns)
{
	struct worker_conf wc = {
		.listeners = listeners,
		.nlisteners = nlisteners,
		.max_conns = max_conns,
		.max_fds = 50,
		.max_head_bytes = 1 << 20,
		.counters_list = &counters_list,
		.cgi = programs,
	};
	struct buf err, warn;
	char *file, *text, why[256];

	buf_init(&err, 0);
	buf_init(&warn, 0);
	logged = g_string_new(NULL);
	log_set_sink(log_collect, NULL);
	log_suppressed_flush(); /* earlier tests must not have used up a limit */
	g_string_truncate(logged, 0);
	dir = g_dir_make_tmp("simworker-XXXXXX", NULL);
	file = g_build_filename(dir, "server.conf", NULL);
	text = g_strdup_printf("server.document-root = \"%s\"\nserver.tag = \"\"\n%s", dir, lines);
	g_assert_true(g_file_set_contents(file, text, -1, NULL));
	config = config_load(file, NULL, &err, &warn);
	if (config == NULL)
		g_test_message("%.*s", (int)err.n, err.p);
	g_assert_nonnull(config);
	g_unlink(file);
	g_free(file);
	g_free(text);
	buf_free(&err);
	buf_free(&warn);
	wc.config = config;
	resources = resources_new(config, rules_kinds, the_access_log, NULL, why, sizeof(why));
	if (resources == NULL)
		g_test_message("%s", why);
	g_assert_nonnull(resources);
	wc.resources = resources;
	memset(m_bytes, 'm', sizeof(m_bytes) - 1);
	counters_list_init(&counters_list);
	io = sim_new();
	sim_auto_close(io, true);
	clients = files = temps = 0;
	g_assert_cmpint(worker_new(&wc, io, &w), ==, 0);
}

static void G_GNUC_UNUSED
up(const char *lines)
{
	up_with(lines, 0, 1000);
}

/* Ends the worker in any state.  Each descriptor is closed once. */
static void G_GNUC_UNUSED
down(void)
{
	unsigned i;

	worker_tell(w, WORKER_STOP);
	worker_round(w);
	sim_run(io);
	g_assert_cmpuint(w->nconns, ==, 0);
	for (i = 0; i < clients; i++)
		g_assert_cmpuint(sim_closed(io, FIRST_CLIENT + (int)i), ==, 1);
	for (i = 0; i < temps; i++) {
		g_assert_cmpuint(sim_closed(io, FIRST_TEMP + (int)i), ==, 1);
		buf_free(&temp[i]);
	}
	worker_free(w); /* with the loop, which asserts that nothing is in flight */
	counters_list_free(&counters_list);
	resources_free(resources);
	config_free(config);
	log_set_sink(NULL, NULL);
	g_string_free(logged, TRUE);
	g_rmdir(dir);
	g_free(dir);
}

/* ---------------------------------------------------------------- clients */

static G_GNUC_UNUSED struct io_sock *
client(void)
{
	static const union io_addr peer = { .in = { .sin_family = AF_INET } };
	struct io_op *op;
	unsigned n;

	conn_new(w, FIRST_CLIENT + (int)clients++, &peer, listeners[0].name);
	for (n = 0; (op = sim_nth(io, n)) != NULL; n++)
		if ((op->kind == IO_RECV || op->kind == IO_HANDSHAKE) &&
		    op->sock->fd == FIRST_CLIENT + (int)clients - 1)
			break;
	g_assert_nonnull(op);
	sim_sent_clear(io, op->sock); /* memory of an earlier one, perhaps */
	return (op->sock);
}

/* The connection made last. */
static G_GNUC_UNUSED struct conn *
last_conn(void)
{
	return (conn_of_link(w->conns.prev));
}

static bool G_GNUC_UNUSED
listens(const struct io_sock *s)
{
	return (sim_find(io, IO_RECV, s) != NULL);
}

static void G_GNUC_UNUSED
say_n(struct io_sock *s, const char *p, size_t n)
{
	struct io_op *op = sim_find(io, IO_RECV, s);

	g_assert_nonnull(op);
	sim_recv(io, op, (struct text){ p, n });
	sim_run(io);
}

static void G_GNUC_UNUSED
say(struct io_sock *s, const char *bytes)
{
	say_n(s, bytes, strlen(bytes));
}

/* An op of this kind and socket ends. */
static void G_GNUC_UNUSED
finish(int kind, struct io_sock *s, int res)
{
	struct io_op *op = sim_find(io, kind, s);

	g_assert_nonnull(op);
	sim_finish(io, op, res);
	sim_run(io);
}

/* res: 0 the end of its stream, -errno */
static void G_GNUC_UNUSED
leave(struct io_sock *s, int res)
{
	finish(IO_RECV, s, res);
}

/* A client that is only watched leaves, or is reset. */
static void G_GNUC_UNUSED
hangs_up(struct io_sock *s)
{
	finish(SIM_HANGUP, s, 0);
}

static void G_GNUC_UNUSED
stop_last(void)
{
	conn_stop(last_conn());
	sim_run(io);
}

/* The client takes at most max bytes from each send; returns the number of sends. */
static unsigned G_GNUC_UNUSED
take(struct io_sock *s, size_t max)
{
	struct io_op *op;
	unsigned n = 0;

	for (; (op = sim_find(io, IO_SEND, s)) != NULL; n++) {
		sim_send(io, op, max);
		sim_run(io);
	}
	return (n);
}

static bool G_GNUC_UNUSED
is_closed(unsigned nth)
{
	return (sim_closed(io, FIRST_CLIENT + (int)nth) == 1);
}

static void G_GNUC_UNUSED
heard_is(struct io_sock *s, const char *want)
{
	struct text t = sim_sent(io, s);

	g_assert_cmpmem(t.p, t.n, want, strlen(want));
	sim_sent_clear(io, s);
}

/* What was sent is replies with these statuses, in this order: "200 404". */
static void G_GNUC_UNUSED
heard_statuses(struct io_sock *s, const char *want)
{
	struct text t = sim_sent(io, s);
	g_autoptr(GString) got = g_string_new(NULL);
	size_t i;

	for (i = 0; i + 12 <= t.n; i++)
		if (memcmp(t.p + i, "HTTP/1.1 ", 9) == 0 && t.p[i + 12] == ' ')
			g_string_append_printf(got, "%s%.3s", got->len ? " " : "", t.p + i + 9);
	g_assert_cmpstr(got->str, ==, want);
	sim_sent_clear(io, s);
}

/* The client takes all that is sent to it: replies with these statuses. */
static void G_GNUC_UNUSED
takes(struct io_sock *s, const char *statuses)
{
	take(s, SIZE_MAX);
	heard_statuses(s, statuses);
}

static bool G_GNUC_UNUSED
heard_has(struct io_sock *s, const char *part)
{
	struct text t = sim_sent(io, s);

	return (memmem(t.p, t.n, part, strlen(part)) != NULL);
}

/* ---------------------------------------------------------------- the disk */

struct on_disk {
	const char *path, *bytes;
	uint64_t size; /* of a large one; its bytes do not matter */
	bool is_dir;
};

static const struct on_disk disk_files[] = {
	{ "a", "AAAA", 4, false },
	{ "b", "BBBBBB", 6, false },
	{ "c", "CC", 2, false },
	{ "m", m_bytes, 3000, false },
	{ "large", NULL, 1000000, false },
	{ "dir", NULL, 0, true },
	{ "dir/index.html", "index", 5, false },
	{ "run.cgi", "never sent", 10, false },
	{ "big", NULL, 300000, false },
};

static const struct on_disk *
on_disk(const char *path)
{
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(disk_files); i++)
		if (strcmp(disk_files[i].path, path) == 0)
			return (&disk_files[i]);
	return (NULL);
}

/* A descriptor says which file it is. */
static const char *
bytes_of(const struct io_op *read)
{
	unsigned n = (unsigned)(read->file.file->fd - FIRST_FILE);

	return (disk_files[n % G_N_ELEMENTS(disk_files)].bytes);
}

static bool
is_temp(const struct io_file *f)
{
	return (f->fd >= FIRST_TEMP && f->fd < FIRST_TEMP + TEMPS);
}

static void
temp_opens(struct io_op *op)
{
	g_assert_cmpuint(temps, <, TEMPS);
	buf_init(&temp[temps], 0);
	sim_finish(io, op, FIRST_TEMP + (int)temps++);
}

static void
temp_writes(struct io_op *op)
{
	struct buf *b = &temp[op->write.file->fd - FIRST_TEMP];

	g_assert_cmpuint(op->write.off, ==, b->n);
	buf_add(b, op->write.p, op->write.len);
	sim_finish(io, op, op->write.len);
}

static struct text
temp_bytes(const struct io_op *op)
{
	const struct buf *b = &temp[op->file.file->fd - FIRST_TEMP];

	g_assert_cmpuint(op->file.off + op->file.len, <=, b->n);
	return ((struct text){ b->p + op->file.off, op->file.len });
}

/* The answer of the disk to one op; sim_run() is the caller's. */
static void
disk_answers(struct io_op *op)
{
	const struct on_disk *f;
	int fd;

	if (sim_kind(op) == SIM_TEMP) {
		temp_opens(op);
		return;
	}
	if (op->kind == IO_WRITE) {
		temp_writes(op);
		return;
	}
	if (op->kind == IO_READ && is_temp(op->file.file)) {
		sim_read(io, op, temp_bytes(op));
		return;
	}
	if (op->kind == IO_READ) {
		sim_read(io, op, text_of(bytes_of(op)));
		return;
	}
	f = on_disk(op->open.path);
	if (f == NULL) {
		sim_finish(io, op, -ENOENT);
		return;
	}
	fd = FIRST_FILE + (int)(files * G_N_ELEMENTS(disk_files)) + (int)(f - disk_files);
	files += !op->only_stat;
	sim_open(io, op, fd, f->size, 1000, f->is_dir ? S_IFDIR : 0);
}

static struct io_op *
disk_op(void)
{
	struct io_op *op = sim_find(io, IO_OPEN, NULL);

	op = op != NULL ? op : sim_find(io, SIM_STAT, NULL);
	op = op != NULL ? op : sim_find(io, SIM_TEMP, NULL);
	op = op != NULL ? op : sim_find(io, IO_WRITE, NULL);
	return (op != NULL ? op : sim_find(io, IO_READ, NULL));
}

/* The socket takes what is sent to it from a temporary file; returns the bytes. */
static size_t G_GNUC_UNUSED
take_temp(struct io_sock *s)
{
	struct io_op *op = sim_find(io, IO_SEND_FILE, s);
	size_t n = op != NULL ? op->file.len : 0;

	if (n != 0) {
		g_assert_true(is_temp(op->file.file));
		(void)temp_bytes(op);
		sim_finish(io, op, (int64_t)n);
		sim_run(io);
	}
	return (n);
}

/* Answers until no op is left; returns how often. */
static unsigned G_GNUC_UNUSED
disk(void)
{
	struct io_op *op;
	unsigned n = 0;

	for (; (op = disk_op()) != NULL; n++) {
		disk_answers(op);
		sim_run(io);
	}
	return (n);
}

/* The disk answers and the client takes, until nothing is left. */
static void G_GNUC_UNUSED
settle(struct io_sock *s)
{
	while (disk() + take(s, SIZE_MAX) != 0)
		;
}

/* The client asks, the disk answers, and the client takes replies with these statuses. */
static void G_GNUC_UNUSED
asks(struct io_sock *s, const char *in, const char *statuses)
{
	say(s, in);
	disk();
	takes(s, statuses);
}

#endif
