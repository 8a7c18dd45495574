/* server/timing.c -- struct timing as the classic line, and as JSON. */
#include "base/clock.h"
#include "base/must.h"
#include "server/timing.h"

#define NS_PER_US 1000u

/* The stages, under the one name they have in both formats. */
static const struct {
	const char *name;
	size_t offset;
} stages[] = {
	{"stat-queue-us", offsetof(struct timing, stat_queue_ns)},
	{"stat-us", offsetof(struct timing, stat_ns)},
	{"proxy-queue-us", offsetof(struct timing, proxy_queue_ns)},
	{"proxy-us", offsetof(struct timing, proxy_ns)},
	{"read-queue-us", offsetof(struct timing, read_queue_ns)},
	{"read-us", offsetof(struct timing, read_ns)},
	{"handover-us", offsetof(struct timing, handover_ns)},
	{"write-us", offsetof(struct timing, write_ns)},
	{"total-us", offsetof(struct timing, total_ns)},
};

static uint64_t
stage_us(const struct timing *t, size_t i)
{
	return (*(const uint64_t *)((const char *)t + stages[i].offset) / NS_PER_US);
}

static void
write_start(struct buf *out, const struct timing *t)
{
	buf_u64(out, t->write_start_wall_ns / NS_PER_S);
	buf_printf(out, ".%06u", (unsigned)(t->write_start_wall_ns % NS_PER_S / NS_PER_US));
}

/* Tag and numbers as in 2007.  Its write-time began when the thread had the bytes, so waking the
 * loop counts in. */
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

void
timing_line(struct buf *out, const struct timing *t)
{
	size_t i;

	classic_words(out, t);
	buf_str(out, " id=");
	buf_str(out, t->id);
	buf_str(out, " status=");
	buf_u64(out, (uint64_t)t->status);
	buf_str(out, " bytes=");
	buf_u64(out, t->bytes);
	buf_str(out, t->hot ? " hot=1" : " hot=0");
	for (i = 0; i < NELEM(stages); i++) {
		buf_char(out, ' ');
		buf_str(out, stages[i].name);
		buf_char(out, '=');
		buf_u64(out, stage_us(t, i));
	}
	buf_str(out, " path=\"");
	buf_log_quoted(out, t->path);
	buf_str(out, "\"\n");
}

/* The tag without the colon that ends it in the line. */
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
	size_t i;

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
	for (i = 0; i < NELEM(stages); i++) {
		buf_str(out, ",\"");
		buf_str(out, stages[i].name);
		buf_str(out, "\":");
		buf_u64(out, stage_us(t, i));
	}
	buf_str(out, ",\"path\":");
	buf_json(out, t->path);
	buf_str(out, "}\n");
}
