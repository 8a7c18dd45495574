/* t/unit/server/meet.c -- where features meet: a random configuration, random requests, and a model
 * of what must come out.
 *
 *   seed --> configuration, clients, applications --> random events --> calm --> the end
 *
 * Laws   Each request is answered once, in order, with a reply of its own.  A request with which
 *        nothing is wrong gets what the model says (meet_judge.h).  An application gets each body
 *        whole, decoded, and once.  Every request ends.  Nothing is left.
 *
 * SEED=n runs one seed, MEET_SEEDS=a-b these; MEET_TRACE=1 prints every event; MEET_PAIRS=1 prints
 * how often each pair of features met.  A pair that can meet and does not fails the test.
 */
#include "proxy-core/backends.h"
#include "t/unit/server/meet.h"
#include "t/unit/server/meet_conf.h"
#include "t/unit/server/meet_client.h"
#include "t/unit/server/meet_app.h"
#include "t/unit/server/meet_judge.h"

#define SEEDS 1500u
#define STEPS 600u

static struct backends cgi_backends;

/* ---------------------------------------------------------------- the disk */

static unsigned
place_of(int fd)
{
	return ((unsigned)(fd - FIRST_FILE) % G_N_ELEMENTS(disk_files));
}

static struct text
range_of(const struct io_op *op)
{
	const struct on_disk *f;
	struct text t;

	if (is_temp(op->file.file))
		return (temp_bytes(op));
	f = &disk_files[place_of(op->file.file->fd)];
	t = f->bytes != NULL ? text_of(f->bytes) : (struct text){ big_bytes, BIG };
	text_take(&t, op->file.off);
	return ((struct text){ t.p, MIN(t.n, op->file.len) });
}

static void
disk_opens(struct io_op *op)
{
	const struct on_disk *f = on_disk(op->open.path);

	trace("the disk opens %s", op->open.path);
	if (f != NULL && now.opened[f - disk_files] == 0)
		now.opened[f - disk_files] = now.step + 1;
	disk_answers(op);
}

static void
disk_meets(struct io_op *op)
{
	static const int errs[] = { -EAGAIN, -EMFILE, -EIO };

	if (now.faults && one_in(30)) {
		trace("the disk fails");
		excuse_all(X_DISK);
		sim_finish(io, op, errs[below(3)]);
	} else if (op->kind == IO_READ && op->only_warm) {
		sim_finish(io, op, op->file.len);
	} else if (op->kind == IO_READ) {
		sim_read(io, op, range_of(op));
	} else if (sim_kind(op) == IO_OPEN) {
		disk_opens(op);
	} else {
		disk_answers(op);
	}
}

/* ---------------------------------------------------------------- what happens */

static size_t
piece_for(const struct visitor *v, bool calm)
{
	if (calm || v == NULL || !v->slow) /* an application may take the head alone */
		return (one_in(v == NULL ? 3 : 8) && !calm ? 1 + below(3000) : SIZE_MAX);
	return (1 + below(one_in(3) ? 40 : 30000));
}

static bool
visitor_hears_of(struct visitor *v, struct io_op *op, bool calm)
{
	if (v->gone && (op->kind == IO_RECV && (!op->only_hangup || v->reset || op->or_end))) {
		sim_finish(io, op, what_is_heard(op, v->reset));
		return (true);
	}
	if (v->gone)
		return (false);
	if (v->leaves && !calm &&
	    (is_within_body(v) ? one_in(4) : v->next >= v->leaves_at && one_in(8))) {
		if (one_in(2))
			visitor_leaves(v, op, -ECONNRESET);
		else if (!op->only_hangup || op->or_end)
			visitor_leaves(v, op, 0);
		else
			return (false);
		return (true);
	}
	return (!op->only_hangup && visitor_says(v, op, calm));
}

static bool
sends(struct io_op *op, bool calm)
{
	struct visitor *v = visitor_of(op->sock);
	struct app *a = v == NULL ? app_of(op->sock) : NULL;
	struct text t;

	if ((v != NULL && v->reset) || (a != NULL && a->resets)) {
		sim_finish(io, op, -EPIPE);
	} else if (op->kind == IO_SEND_FILE) {
		t = range_of(op);
		t.n = least(t.n, piece_for(v, calm));
		sim_send_file(io, op, t);
	} else {
		sim_send(io, op, piece_for(v, calm));
	}
	if (a != NULL)
		app_gets(a);
	return (true);
}

/* False: nothing happened. */
static bool
happens(struct io_op *op, bool calm)
{
	struct visitor *v;
	struct app *a;

	switch (sim_kind(op)) {
	case IO_CONNECT: app_comes(op); return (true);
	case SIM_HANGUP:
	case IO_RECV:
		v = visitor_of(op->sock);
		if (v != NULL)
			return (visitor_hears_of(v, op, calm));
		a = app_of(op->sock);
		if (a != NULL && calm)
			a->waits = 0;
		return (a != NULL && !op->only_hangup && app_says(a, op));
	case IO_SEND:
	case IO_SEND_FILE: return (sends(op, calm));
	case IO_OPEN:
	case SIM_STAT:
	case SIM_TEMP:
	case SIM_WARM:
	case IO_WRITE:
	case IO_READ: disk_meets(op); return (true);
	default: return (false);
	}
}

static void
look(void)
{
	struct visitor *v;
	unsigned i;

	for (i = 0; i < now.nvisitors; i++) {
		v = &now.visitor[i];
		if (v->ended)
			continue;
		while (visitor_hears(v, false))
			;
		if (sim_closed(io, v->fd) != 0)
			visitor_ends(v);
	}
	for (i = 0; i < APPS; i++)
		if (now.app[i].s != NULL && sim_closed(io, now.app[i].fd) != 0)
			app_forget(&now.app[i]);
}

static void
passes(unsigned ms)
{
	now.ms += ms;
	sim_advance_ms(io, ms);
	look();
}

static void
one_step(void)
{
	unsigned n = 0;

	now.step++;
	while (sim_nth(io, n) != NULL)
		n++;
	if (n != 0)
		happens(sim_nth(io, below(n)), false);
	if (!one_in(3)) /* else several are heard of at once */
		sim_run(io);
	look();
	if (now.faults && one_in(200)) {
		trace("much time passes");
		excuse_all(X_TIME);
		passes(WAIT_S * 1100);
	} else if (one_in(12) && now.ms < WAIT_S * 500) {
		passes(below(300));
	}
}

/* All sides do their next step, until there is none. */
static void
calm(void)
{
	struct io_op *op;
	unsigned n = 0;

	sim_run(io);
	look();
	while ((op = sim_nth(io, n++)) != NULL) {
		if (!happens(op, true))
			continue;
		now.step++;
		sim_run(io);
		look();
		n = 0;
	}
}

/* ---------------------------------------------------------------- the end */

static unsigned
waiting(const struct visitor *v)
{
	return (v->next < v->nasks ? v->ask[v->next].id : 0);
}

/* A client that stays has an answer to each request that it sent. */
static void
all_answered(void)
{
	const struct visitor *v;
	const struct ask *a;
	unsigned i;

	for (i = 0; i < now.nvisitors; i++) {
		v = &now.visitor[i];
		if (v->ended || v->reset || v->next == v->nasks)
			continue;
		a = &v->ask[v->next];
		law(v->said < a->last || (a->n != 0 && closes_behind(a - 1)),
		    "request %u gets no answer", a->id);
	}
}

static void
all_end(void)
{
	unsigned s, i;

	calm();
	for (s = 0; s < MOST_S && w->nconns != 0; s++) {
		if (s == ASKS + 1 && !now.faults) /* a status page a second */
			all_answered();
		if (now.faults)
			excuse_all(X_TIME);
		passes(1000);
		calm();
	}
	for (i = 0; i < now.nvisitors; i++)
		law(now.visitor[i].ended, "visitor %u is not closed after %u s; request %u waits",
		    now.visitor[i].nth, MOST_S, waiting(&now.visitor[i]));
	for (s = 0; s < 30; s++) {
		passes(1000);
		calm();
	}
	for (i = 0; i < APPS; i++)
		law(now.app[i].s == NULL, "socket %d of an application is left", now.app[i].fd);
	for (i = 0; sim_nth(io, i) != NULL; i++)
		law(sim_nth(io, i)->kind == IO_TIMER, "an op of kind %d is left",
		    sim_kind(sim_nth(io, i)));
}

/* Most files are known, present ones and absent ones, so they are answered at once. */
static void
warm(void)
{
	struct io_sock *s = client();
	unsigned i;

	now.conns++;
	say(s, GET("/a") GET("/b") GET("/m") GET("/none") GET("/dir") GET("/nothing") GET("/dir/"));
	while (disk() + take(s, SIZE_MAX) != 0)
		;
	leave(s, 0);
	for (i = 0; i < G_N_ELEMENTS(disk_files); i++)
		now.opened[i] = 1;
}

/* The first visitor comes at once, the others when there is room for them. */
static void
visitors_come(unsigned most, bool first)
{
	unsigned i, n = 0;

	for (i = 0; i < now.nvisitors; i++)
		n += !now.visitor[i].ended;
	if (first || (now.nvisitors < most && n < 3 && one_in(8)))
		visitor_comes();
}

static void
begin(unsigned seed)
{
	unsigned i;

	memset(&now, 0, sizeof(now));
	now.seed = seed;
	now.rng = (seed + 1) * 0x9e3779b97f4a7c15ull;
	now.trace = g_getenv("MEET_TRACE") != NULL;
	for (i = 0; i < 4; i++)
		below(2);
	printf("# SEED=%u\n", seed);
	fflush(stdout);
}

static void
one_seed(unsigned seed)
{
	unsigned i, most;

	begin(seed);
	now.faults = one_in(3);
	conf_make();
	if (now.trace)
		printf("# %s", now.text->str);
	programs = now.programs ? &cgi_backends : NULL;
	up(now.text->str);
	if (!now.programs && (now.handler == NO_HANDLER || strcmp(now.error_to, "/b") == 0))
		warm();
	most = 3 + below(VISITORS - 2);
	for (i = 0; i < STEPS; i++) {
		visitors_come(most, i == 0);
		one_step();
	}
	all_end();
	down();
	g_string_free(now.text, TRUE);
}

/* ---------------------------------------------------------------- seeds */

#include "t/unit/server/meet_owned.h"

TEST("/meet/seeds")
{
	const char *one = g_getenv("SEED"), *range = g_getenv("MEET_SEEDS");
	unsigned from = 0, to = SEEDS - 1, seed;
	bool all = one == NULL && range == NULL;

	if (one != NULL)
		from = to = (unsigned)atoi(one);
	else if (range != NULL)
		g_assert_cmpint(sscanf(range, "%u-%u", &from, &to), ==, 2);
	/* A rare pair gets more seeds. */
	for (seed = from; seed <= to || (all && seed < 4 * SEEDS && pairs_missing() != 0); seed++) {
		one_seed(seed);
	}
	pairs_show(g_getenv("MEET_PAIRS") != NULL);
	if (all)
		g_assert_cmpuint(pairs_missing(), ==, 0);
}

TEST("/meet/owned")
{
	const char *one = g_getenv("SEED");
	unsigned from = one != NULL ? (unsigned)atoi(one) : 0, seed;

	for (seed = from; seed <= (one != NULL ? from : 50); seed++)
		owned_seed(seed);
}

int
main(int argc, char **argv)
{
	struct address a;
	size_t i;

	g_test_init(&argc, &argv, NULL);
	for (i = 0; i < BIG; i++)
		big_bytes[i] = (char)('A' + i % 19);
	g_assert_cmpint(address_parse("10.0.0.9:80", &a), ==, 0);
	g_assert_cmpint(backends_add(&cgi_backends, "cgi", &a, 1, 1), ==, 0);
	return (tests_run());
}
