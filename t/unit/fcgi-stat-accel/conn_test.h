/* t/unit/fcgi-stat-accel/conn_test.h -- one connection on the loop of the tests, and what its peer
 * says and hears.
 *
 * Whether a file is in memory is decided here, in place of files/warm/: "/cold..." is not. */
#ifndef CONN_TEST_H
#define CONN_TEST_H

#include <errno.h>

#include "fcgi-stat-accel/conn_impl.h"
#include "fcgi-stat-accel/counters.h"
#include "fcgi-stat-accel/peer.h"
#include "io/loop/sim.h"
#include "t/unit/test.h"

#define FD 70

static struct io *io;
static struct accel_counters counters;
static const struct all_counters shown;
static struct advice advice;
static struct conns all;
static const struct text names[] = { { "SCRIPT_FILENAME", 15 }, { "SCRIPT_NAME", 11 },
	{ "WARM_OPEN", 9 } };
static const struct accel_conf accel = { .header = "X-Sendfile", .expires = -1 };
static const struct status status = { .ping_path = "/ping", .counters = &shown };
static struct list waiting;       /* for files that are not in memory: "/cold..." */
static struct warm_found hot;     /* all others */
static struct list opens;         /* struct warm_open: asked for */
static bool own_user, own_groups; /* the peer has the user of this process, and no other groups */
static unsigned cancelled, gone;

bool
warm_file(struct warm *warm, const char *path, struct warm_wait *w)
{
	if (!g_str_has_prefix(path, "/cold")) {
		w->found = hot;
		return (true);
	}
	list_add_tail(&waiting, &w->wait.link);
	return (false);
}

void
warm_cancel(struct warm_wait *w)
{
	if (w->wait.link.next == NULL)
		return;
	list_del(&w->wait.link);
	cancelled++;
}

struct warm_open {
	struct list link;
	struct warm_opening how;
	char path[32];
};

struct warm_open *
warm_open(struct warm *warm, const char *path, const struct warm_opening *how)
{
	struct warm_open *o = g_new0(struct warm_open, 1);

	o->how = *how;
	g_strlcpy(o->path, path, sizeof(o->path));
	list_init(&o->link);
	list_add_tail(&opens, &o->link);
	return (o);
}

void
warm_open_cancel(struct warm_open **o)
{
	if (*o == NULL)
		return;
	list_del(&(*o)->link);
	g_free(*o);
	*o = NULL;
	cancelled++;
}

bool
peer_is_own_user(int fd)
{
	return (own_user);
}

bool
peer_has_own_groups(int fd)
{
	return (own_groups);
}

static void
on_gone(struct conns *c)
{
	gone++;
}

static void
up(void)
{
	io = sim_new();
	sim_auto_close(io, true);
	counters = (struct accel_counters){ 0 };
	list_init(&waiting);
	list_init(&opens);
	hot = (struct warm_found){ 0 };
	own_user = own_groups = true;
	cancelled = gone = 0;
	all = (struct conns){
		.io = io,
		.counters = &counters,
		.accel = &accel,
		.advice = &advice,
		.status = &status,
		.gone = on_gone,
		.record = { .names = names,
		    .n_names = G_N_ELEMENTS(names),
		    .max_conns = 9,
		    .max_reqs = 9 },
	};
	conns_init(&all);
	g_assert_cmpint(request_reader_new(&all.reader), ==, 0);
	conn_open(&all, FD, true);
	sim_run(io);
}

static void
down(void)
{
	conns_close(&all);
	sim_run(io);
	g_assert_cmpuint(counters.conns, ==, 0);
	g_assert_true(list_empty(&waiting));
	g_assert_true(list_empty(&opens));
	g_assert_cmpuint(counters.fds, ==, 0);
	request_reader_free(&all.reader);
	conns_free(&all);
	io_free(io); /* must() fails there when something is in flight */
}

/* ---------------------------------------------------------------- what peers say, and hear */

static void
put_record(GString *s, int type, int id, const void *content, size_t n)
{
	const uint8_t head[8] = { 1, type, id >> 8, id, n >> 8, n, 0, 0 };

	g_string_append_len(s, (const char *)head, 8);
	g_string_append_len(s, content, (gssize)n);
}

/* more: further pairs; NULL: none */
static void
put_pairs(GString *s, int id, bool keep, const char *path, const char *more)
{
	const uint8_t begin[8] = { 0, 1, keep };
	g_autoptr(GString) pair = g_string_new(NULL);

	put_record(s, 1, id, begin, 8);
	g_string_append_printf(pair, "%c%cSCRIPT_FILENAME%s", 15, (char)strlen(path), path);
	g_string_append(pair, more != NULL ? more : "");
	put_record(s, 4, id, pair->str, pair->len);
	put_record(s, 4, id, "", 0);
	put_record(s, 5, id, "", 0);
}

static void
put_request(GString *s, int id, bool keep, const char *path)
{
	put_pairs(s, id, keep, path, NULL);
}

static struct conn *
the_conn(void)
{
	struct list *where = list_empty(&all.busy) ? &all.quiet : &all.busy;

	g_assert_false(list_empty(where));
	return (list_entry(where->next, struct conn, link));
}

static struct io_op *
op_of(enum io_kind kind)
{
	return (sim_find(io, kind, NULL));
}

/* Takes *s. */
static void
receive(GString *s)
{
	g_assert_nonnull(op_of(IO_RECV));
	sim_recv(io, op_of(IO_RECV), (struct text){ s->str, s->len });
	g_string_free(s, TRUE);
	sim_run(io);
}

static void
ask(int id, bool keep, const char *path)
{
	GString *s = g_string_new(NULL);

	put_request(s, id, keep, path);
	receive(s);
}

static void
abort_request(int id)
{
	GString *s = g_string_new(NULL);

	put_record(s, 2, id, "", 0);
	receive(s);
}

static void
send_all(void)
{
	struct io_op *op;

	while ((op = op_of(IO_SEND)) != NULL) {
		sim_send(io, op, SIZE_MAX);
		sim_run(io);
	}
}

/* Ends the oldest look-up with its file or err. */
static void
found(int err)
{
	struct warm_wait *w = list_entry(list_pop(&waiting), struct warm_wait, wait.link);

	w->found = (struct warm_found){ .err = err };
	w->done(w);
	sim_run(io);
}

/* All that was sent, as "ID:STATUS " for each answer, "ID:end " for an END_REQUEST alone, "values
 * "; forgotten then. */
static char *
heard(void)
{
	struct text t = sim_sent(io, &the_conn()->sock);
	GString *log = g_string_new(NULL);
	const uint8_t *p = (const uint8_t *)t.p, *end = p + t.n;
	bool said = false;

	while (p < end) {
		size_t n = (size_t)(p[4] << 8 | p[5]);

		g_assert_cmpint(end - p, >=, 8 + (gssize)n + p[6]);
		if (p[1] == 6 && n > 0) {
			g_string_append_printf(log, "%d:%.3s ", p[2] << 8 | p[3],
			    p + 8 + strlen("Status: "));
			said = true;
		} else if (p[1] == 3) {
			if (!said)
				g_string_append_printf(log, "%d:end ", p[2] << 8 | p[3]);
			said = false;
		} else if (p[1] == 10)
			g_string_append(log, "values ");
		p += 8 + n + p[6];
	}
	sim_sent_clear(io, &the_conn()->sock);
	return (g_string_free(log, FALSE));
}

static void
assert_heard(const char *want)
{
	char *got;

	send_all();
	got = heard();
	g_assert_cmpstr(got, ==, want);
	g_free(got);
}

static void
assert_open(void)
{
	g_assert_cmpuint(counters.conns, ==, 1);
	g_assert_cmpuint(sim_closed(io, FD), ==, 0);
}

static void
assert_closed(void)
{
	g_assert_cmpuint(counters.conns, ==, 0);
	g_assert_cmpuint(sim_closed(io, FD), ==, 1);
	g_assert_cmpuint(gone, ==, 1);
}

#endif
