/* fcgi-stat-accel/advice.c -- counts the outcomes of questions, and judges each window. */

#include "fcgi-stat-accel/advice.h"

#include <errno.h>
#include <string.h>

const struct advice_info advice_infos[ADVICE_IDS] = {
#define ADVICE(name, id, seen, next) [ADVICE_##name] = { id, seen, next },
#include "fcgi-stat-accel/advice.def"
#undef ADVICE
};

static void
name_set(struct advice_name *name, struct text t)
{
	name->cut = t.n > ADVICE_NAME_MAX;
	name->n = (uint8_t)(name->cut ? ADVICE_NAME_MAX : t.n);
	if (name->n > 0)
		memcpy(name->text, t.p, name->n);
}

/* ---------------------------------------------------------------- begin and end */

static bool
may_log(const struct advice_state *s, uint64_t now_ns)
{
	return (s->logged_ns == 0 || now_ns - s->logged_ns >= ADVICE_AGAIN_NS);
}

/* The end is logged if the beginning was. */
static void
turn(struct advice *a, enum advice_id id, bool on, uint64_t now_ns)
{
	struct advice_state *s = &a->state[id];
	bool log = on ? may_log(s, now_ns) : s->logged;

	s->on = on;
	s->logged = on && log;
	if (s->logged)
		s->logged_ns = now_ns;
	if (log && a->say != NULL)
		a->say(a, id);
}

static bool
reaches(const struct advice *a, enum advice_id id, uint64_t percent)
{
	return (percent >= (a->state[id].on ? ADVICE_END_PERCENT : ADVICE_BEGIN_PERCENT));
}

/* f: percent, answers, waited_ns and example, of interest if the advice is in force */
static void
judge(struct advice *a, enum advice_id id, bool holds, struct advice_state f, uint64_t now_ns)
{
	struct advice_state *s = &a->state[id];

	if (holds) {
		s->percent = f.percent;
		s->answers = f.answers;
		s->waited_ns = f.waited_ns;
		s->example = f.example;
	}
	if (holds != s->on)
		turn(a, id, holds, now_ns);
}

/* ---------------------------------------------------------------- a window is full */

static enum advice_id
main_cause(const struct advice_window *w)
{
	enum advice_id most = 0;

	for (enum advice_id id = 0; id < ADVICE_CAUSES; id++)
		if (w->causes[id] > w->causes[most])
			most = id;
	return (most);
}

static uint64_t
without_file(const struct advice_window *w)
{
	uint64_t n = 0;

	for (enum advice_id id = 0; id < ADVICE_CAUSES; id++)
		n += w->causes[id];
	return (n);
}

/* One equal path without a file needs one window; with a file it needs many.  Questions without any
 * path have a cause of their own. */
static bool
judge_equal(struct advice *a, uint64_t useless, uint64_t now_ns)
{
	const struct advice_window *w = &a->window;
	bool on = a->state[ADVICE_equal].on, same, holds;

	same = w->name.n > 0 &&
	       w->votes * 100 >= w->answers * (on ? ADVICE_EQUAL_END : ADVICE_EQUAL_BEGIN);
	if (!same || w->hash != a->equal_hash)
		memset(&a->equal, 0, sizeof(a->equal));
	a->equal_hash = w->hash;
	a->equal.windows += same;
	holds = same && (reaches(a, ADVICE_equal, useless) || a->equal.windows >= ADVICE_LONG);
	judge(a, ADVICE_equal, holds,
	    (struct advice_state){ .percent = (unsigned)(w->votes * 100 / w->answers),
		.answers = w->answers,
		.example = w->name },
	    now_ns);
	return (holds);
}

/* The largest cause is named if nearly all answers are without a file, for whatever cause. */
static void
judge_causes(struct advice *a, uint64_t useless, bool equal, uint64_t now_ns)
{
	const struct advice_window *w = &a->window;
	enum advice_id most = main_cause(w);

	for (enum advice_id id = 0; id < ADVICE_CAUSES; id++)
		judge(a, id, id == most && !equal && reaches(a, id, useless),
		    (struct advice_state){
			.percent = (unsigned)(w->causes[id] * 100 / w->answers),
			.answers = w->answers,
			.example = w->example[id],
		    },
		    now_ns);
}

static bool
is_warm(const struct advice_window *w, uint64_t useless)
{
	return (useless < ADVICE_END_PERCENT && w->misses * 2 <= w->answers &&
		w->cold <= w->answers / ADVICE_COLD_ONE_OF &&
		w->waited_ns < w->answers * ADVICE_ASK_NS);
}

/* The cause of many warm windows in a row; ADVICE_IDS: not known yet. */
static enum advice_id
warm_cause(const struct advice *a)
{
	if (a->probe.cold > 0)
		return (ADVICE_warm);
	if (a->probe.warm >= ADVICE_PROBES)
		return (ADVICE_late);
	return (a->forget != NULL && a->warm.windows < ADVICE_LONG + ADVICE_PROBE_WINDOWS
		    ? ADVICE_IDS
		    : ADVICE_unclear);
}

/* A file of the beginning of the window: its reply has been sent. */
static void
send_probe(struct advice *a)
{
	const struct advice_name *file = &a->window.file;
	char path[ADVICE_NAME_MAX + 1];

	if (a->forget == NULL || a->probe.state == PROBE_SENT || file->n == 0 || file->cut)
		return;
	memcpy(path, file->text, file->n);
	path[file->n] = '\0';
	a->probe.hash = text_hash((struct text){ file->text, file->n });
	a->probe.state = PROBE_SENT;
	if (!a->forget(a, path))
		a->probe.state = PROBE_IDLE;
}

static void
judge_warm(struct advice *a, uint64_t useless, bool equal, uint64_t now_ns)
{
	static const enum advice_id ids[] = { ADVICE_warm, ADVICE_late, ADVICE_unclear };
	const struct advice_window *w = &a->window;
	enum advice_id cause = ADVICE_IDS;

	if (equal || !is_warm(w, useless)) {
		memset(&a->warm, 0, sizeof(a->warm));
		a->probe.warm = a->probe.cold = 0;
	} else {
		a->warm.windows++;
		a->warm.answers += w->answers;
		a->warm.waited_ns += w->waited_ns;
	}
	if (a->warm.windows >= ADVICE_LONG)
		cause = warm_cause(a);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		judge(a, ids[i], ids[i] == cause,
		    (struct advice_state){
			.percent = (unsigned)(100 - w->cold * 100 / w->answers),
			.answers = a->warm.answers,
			.waited_ns = a->warm.waited_ns,
			.example = w->name,
		    },
		    now_ns);
	if (a->warm.windows >= ADVICE_LONG && cause == ADVICE_IDS)
		send_probe(a);
}

static void
judge_misses(struct advice *a, uint64_t now_ns)
{
	const struct advice_window *w = &a->window;
	bool on = w->misses * 100 >= w->answers * ADVICE_MISS_PERCENT;

	a->missing.windows = on ? a->missing.windows + 1 : 0;
	judge(a, ADVICE_misses, a->missing.windows >= ADVICE_LONG,
	    (struct advice_state){ .percent = (unsigned)(w->misses * 100 / w->answers),
		.answers = w->answers,
		.example = w->name },
	    now_ns);
}

static void
judge_window(struct advice *a, uint64_t now_ns)
{
	uint64_t useless = without_file(&a->window) * 100 / a->window.answers;
	bool equal = judge_equal(a, useless, now_ns);

	judge_causes(a, useless, equal, now_ns);
	judge_warm(a, useless, equal, now_ns);
	judge_misses(a, now_ns);
	memset(&a->window, 0, offsetof(struct advice_window, name));
}

/* ---------------------------------------------------------------- what comes in */

static enum advice_id
cause_of(const struct advice_answer *answer)
{
	if (answer->unnamed)
		return (ADVICE_no_path);
	switch (-answer->err) {
	case EXDEV: return (ADVICE_outside);
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG: return (ADVICE_absent);
	case EISDIR: return (ADVICE_directory);
	case EACCES:
	case ELOOP:
	case EPERM: return (ADVICE_denied);
	default: return (ADVICE_failing);
	}
}

/* Boyer and Moore: another name takes a vote away; without votes the next name is the candidate. */
static void
vote(struct advice_window *w, struct text path)
{
	uint64_t hash = text_hash(path);

	if (w->votes == 0) {
		w->hash = hash;
		name_set(&w->name, path);
	}
	if (w->hash == hash)
		w->votes++;
	else
		w->votes--;
}

/* True: the answer was about the probe, and shows only the order. */
static bool
is_probe(struct advice_probe *p, const struct advice_answer *answer)
{
	if (p->state != PROBE_OUT || !answer->fresh || text_hash(answer->path) != p->hash)
		return (false);
	p->state = PROBE_IDLE;
	if (answer->waited_ns == 0)
		p->warm++;
	else
		p->cold++;
	return (answer->waited_ns != 0);
}

void
advice_forgotten(struct advice *a, bool gone)
{
	a->probe.state = gone ? PROBE_OUT : PROBE_IDLE;
}

static void
count_answer(struct advice_window *w, const struct advice_answer *answer)
{
	uint64_t waited_ns = answer->awake ? 0 : answer->waited_ns;
	enum advice_id id;

	w->cold += waited_ns >= ADVICE_COLD_NS;
	w->waited_ns += waited_ns;
	vote(w, answer->path);
	if (answer->err == 0) {
		if (w->files++ == 0)
			name_set(&w->file, answer->path);
		return;
	}
	if (answer->cached && answer->err == -ENOENT) {
		w->misses++;
		return;
	}
	id = cause_of(answer);
	if (w->causes[id]++ == 0)
		name_set(&w->example[id], answer->path);
}

void
advice_answered(struct advice *a, const struct advice_answer *answer, uint64_t now_ns)
{
	struct advice_window *w = &a->window;

	if (a->window_ns == 0 || is_probe(&a->probe, answer))
		return;
	if (w->answers++ == 0)
		w->since_ns = now_ns;
	count_answer(w, answer);
	if (w->answers >= ADVICE_ANSWERS && now_ns - w->since_ns >= a->window_ns)
		judge_window(a, now_ns);
}

void
advice_connected(struct advice *a, bool welcome, uint64_t now_ns)
{
	uint64_t percent;

	if (a->window_ns == 0)
		return;
	if (a->conns.all++ == 0)
		a->conns.since_ns = now_ns;
	a->conns.refused += !welcome;
	if (a->conns.all < ADVICE_CONNS || now_ns - a->conns.since_ns < a->window_ns)
		return;
	percent = a->conns.refused * 100 / a->conns.all;
	judge(a, ADVICE_peers, reaches(a, ADVICE_peers, percent),
	    (struct advice_state){ .percent = (unsigned)percent, .answers = a->conns.all }, now_ns);
	memset(&a->conns, 0, sizeof(a->conns));
}
