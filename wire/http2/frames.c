/* wire/http2/frames.c -- see frames.h */
#include "wire/http2/frames.h"

#define PREFACE_LEN 24u
#define HEAD_LEN    9u
#define DEPENDS_LEN 4u
#define BITS        64u
#define END_STREAM  1

enum { DATA, HEADERS, PRIORITY, RST_STREAM, CONTINUATION = 9, PRIORITY_UPDATE = 16 };

static uint32_t
load_be32(const uint8_t *p)
{
	return ((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

static uint32_t
length_of(const uint8_t *head)
{
	return (load_be32(head) >> 8);
}

static uint32_t
stream_at(const uint8_t *p)
{
	return (load_be32(p) & 0x7fffffffu);
}

void
http2_frames_init(struct http2_frames *f)
{
	*f = (struct http2_frames){ .skip = PREFACE_LEN };
}

/* Bytes of a frame that are read. */
static unsigned
wanted(const struct http2_frames *f)
{
	bool reads =
	    f->n >= HEAD_LEN && f->head[3] == PRIORITY && length_of(f->head) >= DEPENDS_LEN;

	return (reads ? HEAD_LEN + DEPENDS_LEN : HEAD_LEN);
}

static enum http2_wrong
judge_priority(const struct http2_frames *f, uint32_t id, const char **why)
{
	*why = "PRIORITY of stream 0";
	if (id == 0)
		return (HTTP2_WRONG);
	*why = "a stream that depends on itself";
	return (f->n > HEAD_LEN && stream_at(f->head + HEAD_LEN) == id ? HTTP2_WRONG : HTTP2_RIGHT);
}

/* 0: the stream is above the last one, or long ago. */
static uint64_t
bit_of(const struct http2_frames *f, uint32_t id)
{
	uint32_t back = (f->last - id) / 2;

	return (id <= f->last && back < BITS ? 1ull << back : 0);
}

static void
note_begun(struct http2_frames *f, uint32_t id)
{
	uint32_t steps = (id - f->last + 1) / 2;

	f->began = steps < BITS ? f->began << steps : 0;
	f->said_all = steps < BITS ? f->said_all << steps : 0;
	f->began |= 1;
	f->last = id;
}

static enum http2_wrong
judge_state(struct http2_frames *f, uint8_t type, uint32_t id, const char **why)
{
	bool fresh = type == HEADERS && id > f->last;

	if (fresh)
		note_begun(f, id);
	*why = "a frame of a stream that the client has ended";
	if (type != RST_STREAM && (f->said_all & bit_of(f, id)) != 0)
		return (HTTP2_WRONG_STATE);
	*why = "a stream with a lower number than the last one";
	if (type == HEADERS && bit_of(f, id) != 0 && (f->began & bit_of(f, id)) == 0)
		return (HTTP2_WRONG);
	if (type == RST_STREAM || (f->head[4] & END_STREAM) != 0)
		f->said_all |= bit_of(f, id);
	return (HTTP2_RIGHT);
}

static enum http2_wrong
judge(struct http2_frames *f, const char **why)
{
	uint32_t id = stream_at(f->head + 5);
	uint8_t type = f->head[3];

	if (type > CONTINUATION && type != PRIORITY_UPDATE)
		f->unknown++;
	if (type == PRIORITY)
		return (judge_priority(f, id, why));
	return (type <= RST_STREAM && id % 2 == 1 ? judge_state(f, type, id, why) : HTTP2_RIGHT);
}

static void
skip(struct http2_frames *f, struct text *t)
{
	f->skip -= (uint32_t)text_take(t, f->skip).n;
}

enum http2_wrong
http2_frames_look(struct http2_frames *f, struct text t, const char **why)
{
	enum http2_wrong w = HTTP2_RIGHT;

	for (skip(f, &t); t.n != 0 && w == HTTP2_RIGHT; skip(f, &t)) {
		while (t.n != 0 && f->n < wanted(f))
			f->head[f->n++] = (uint8_t)*text_take(&t, 1).p;
		if (f->n < wanted(f))
			break;
		w = judge(f, why);
		f->skip = length_of(f->head) - (f->n - HEAD_LEN);
		f->n = 0;
	}
	return (w);
}
