#include "fcgi-stat-accel/advice_show.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

/* The first root, to compare the example with. */
static const char *
root_of(const struct advice *a)
{
	return (a->roots != NULL && a->roots[0] != NULL ? a->roots[0] : "/");
}

/* ---------------------------------------------------------------- the log */

static void
log_one(const struct advice *a, enum advice_id id, const char *ev)
{
	const struct advice_info *info = &advice_infos[id];
	const struct advice_state *s = &a->state[id];

	log_event(LOG_WARN, NULL, ev, LF_STR("id", info->id), LF_U64("percent", s->percent),
	    LF_U64("of", s->answers), LF_TEXT("example", advice_example(s)),
	    LF_U64("example-cut", s->example.cut), LF_STR("root", root_of(a)),
	    LF_U64("waited-ms", s->waited_ns / NS_PER_MS),
	    LF_U64("cost-ms", s->answers * ADVICE_ASK_NS / NS_PER_MS), LF_STR("seen", info->seen),
	    LF_STR("do", info->next));
}

void
advice_log(const struct advice *a, enum advice_id id)
{
	if (a->state[id].on)
		log_one(a, id, "advice.begins");
	else
		log_event(LOG_INFO, NULL, "advice.ends", LF_STR("id", advice_infos[id].id),
		    LF_STR("seen", "not any more: the last questions are different"));
}

void
advice_log_all(const struct advice *a)
{
	for (enum advice_id id = 0; id < ADVICE_IDS; id++)
		if (a->state[id].on)
			log_one(a, id, "accel.advice");
}

/* ---------------------------------------------------------------- status pages */

static void
text_one(struct buf *out, const struct advice *a, enum advice_id id)
{
	const struct advice_state *s = &a->state[id];

	buf_printf(out, "accel.advice.%s: %s (%u %% of %" PRIu64, advice_infos[id].id,
	    advice_infos[id].seen, s->percent, s->answers);
	if (s->example.n > 0) {
		buf_str(out, ", as \"");
		buf_log_quoted(out, advice_example(s));
		buf_str(out, s->example.cut ? "...\"" : "\"");
	}
	if (id == ADVICE_outside || id == ADVICE_absent) {
		buf_str(out, "; --root is \"");
		buf_log_quoted(out, text_of(root_of(a)));
		buf_str(out, "\"");
	}
	if (id == ADVICE_warm || id == ADVICE_unclear)
		buf_printf(out, "; they waited %llu ms and cost %llu ms of CPU",
		    s->waited_ns / NS_PER_MS, s->answers * ADVICE_ASK_NS / NS_PER_MS);
	buf_printf(out, ") %s\n", advice_infos[id].next);
}

void
advice_text(struct buf *out, const struct advice *a)
{
	bool any = false;

	for (enum advice_id id = 0; id < ADVICE_IDS; id++) {
		if (!a->state[id].on)
			continue;
		text_one(out, a, id);
		any = true;
	}
	if (!any)
		buf_str(out, "accel.advice: none\n");
}

static void
json_one(struct buf *out, enum advice_id id, const struct advice_state *s)
{
	buf_printf(out,
	    "{\"id\":\"%s\",\"percent\":%u,\"of\":%" PRIu64 ",\"example\":", advice_infos[id].id,
	    s->percent, s->answers);
	buf_json(out, advice_example(s));
	buf_printf(out, ",\"example_cut\":%s,\"waited_ns\":%" PRIu64 ",\"cost_ns\":%" PRIu64,
	    s->example.cut ? "true" : "false", s->waited_ns, s->answers * ADVICE_ASK_NS);
	buf_str(out, ",\"seen\":");
	buf_json(out, text_of(advice_infos[id].seen));
	buf_str(out, ",\"do\":");
	buf_json(out, text_of(advice_infos[id].next));
	buf_char(out, '}');
}

void
advice_json(struct buf *out, const struct advice *a)
{
	const char *before = "";

	buf_str(out, "\"advice\":[");
	for (enum advice_id id = 0; id < ADVICE_IDS; id++) {
		if (!a->state[id].on)
			continue;
		buf_str(out, before);
		json_one(out, id, &a->state[id]);
		before = ",\n";
	}
	buf_char(out, ']');
}

/* The example is not a label: it would make a new time series of each name. */
void
advice_metrics(const struct prom *p, const struct advice *a)
{
	prom_family(p, "advice", "gauge",
	    "1: the questions show that the set-up accelerates nothing; the log has the line.");
	for (enum advice_id id = 0; id < ADVICE_IDS; id++) {
		prom_name(p, "advice");
		buf_char(p->out, '{');
		prom_label(p, "id", advice_infos[id].id);
		buf_printf(p->out, "} %d\n", a->state[id].on);
	}
}

/* ---------------------------------------------------------------- the manual */

void
advice_manual(struct manpage *p)
{
	struct buf b;

	buf_init(&b, 0);
	for (const struct advice_info *i = advice_infos; i < advice_infos + ADVICE_IDS; i++) {
		manpage_item(p, i->id);
		b.n = 0;
		buf_printf(&b, "%s %s", i->seen, i->next);
		buf_char(&b, '\0');
		manpage_text(p, b.p);
	}
	buf_free(&b);
}
