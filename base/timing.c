/* base/timing.c -- struct timing as the classic line, and as JSON. */
#include "base/clock.h"
#include "base/timing.h"

const struct stage_info stage_infos[NSTAGES] = {
#define S(field, name) { name, offsetof(struct timing, field##_ns) },
	STAGES(S)
#undef S
};

uint64_t
timing_stage(const struct timing *t, enum stage stage)
{
	return (*(const uint64_t *)((const char *)t + stage_infos[stage].offset));
}

static void
write_start(struct buf *out, const struct timing *t)
{
	buf_u64(out, t->write_start_wall_ns / NS_PER_S);
	buf_printf(out, ".%06u", (unsigned)(t->write_start_wall_ns % NS_PER_S / NS_PER_US));
}

/* Tag and numbers as in 2007.  The write-time of 2007 began when the thread had the bytes, so it
 * includes waking the loop. */
static void
classic_words(struct buf *out, const struct timing *t)
{
	buf_str(out, t->tag);
	buf_str(out, " (trace) write-start: ");
	write_start(out, t);
	buf_str(out, " read-queue-wait: ");
	buf_u64(out, t->read_queue_ns / NS_PER_MS);
	buf_str(out, " ms read-time: ");
	buf_u64(out, t->read_ns / NS_PER_MS);
	buf_str(out, " ms write-time: ");
	buf_u64(out, (t->handover_ns + t->write_ns) / NS_PER_MS);
	buf_str(out, " ms");
}

/* For each stage: text before its name, name, text after it, microseconds. */
static void
put_stage(struct buf *out, const struct timing *t, enum stage i, const char *before,
    const char *after)
{
	buf_str(out, before);
	buf_str(out, stage_infos[i].name);
	buf_str(out, after);
	buf_u64(out, timing_stage(t, i) / NS_PER_US);
}

/* Few requests have a handshake. */
static void
put_stages(struct buf *out, const struct timing *t, const char *before, const char *after)
{
	unsigned i;

	for (i = 0; i < NSTAGES; i++)
		if (i != stage_handshake)
			put_stage(out, t, i, before, after);
	if (t->handshake_ns != 0)
		put_stage(out, t, stage_handshake, before, after);
}

void
timing_line(struct buf *out, const struct timing *t)
{
	classic_words(out, t);
	buf_str(out, " id=");
	buf_str(out, t->id);
	buf_str(out, " status=");
	buf_u64(out, (uint64_t)t->status);
	buf_str(out, " bytes=");
	buf_u64(out, t->bytes);
	buf_str(out, t->hot ? " hot=1" : " hot=0");
	put_stages(out, t, " ", "-us=");
	if (t->cut)
		buf_str(out, " cut=1");
	buf_str(out, " path=\"");
	buf_log_quoted(out, t->path);
	buf_str(out, "\"\n");
}

/* The tag without the colon at its end. */
static struct text
backend_name(const char *tag)
{
	struct text t = text_of(tag);

	if (text_ends(t, TEXT(":")))
		t.n--;
	return (t);
}

void
timing_json(struct buf *out, const struct timing *t)
{
	buf_str(out, "{\"write-start\":");
	write_start(out, t);
	buf_str(out, ",\"backend\":");
	buf_json(out, backend_name(t->tag));
	buf_str(out, ",\"id\":");
	buf_json(out, text_of(t->id));
	buf_str(out, ",\"status\":");
	buf_u64(out, (uint64_t)t->status);
	buf_str(out, ",\"bytes\":");
	buf_u64(out, t->bytes);
	buf_str(out, t->hot ? ",\"hot\":true" : ",\"hot\":false");
	put_stages(out, t, ",\"", "-us\":");
	if (t->cut)
		buf_str(out, ",\"cut\":true");
	buf_str(out, ",\"path\":");
	buf_json(out, t->path);
	buf_str(out, "}\n");
}
