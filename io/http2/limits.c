/* io/http2/limits.c -- what a client may do how often: a bucket for each kind of frame that costs
 * the server more than the client.
 *
 * A bucket gets `rate` a second until it holds `most`.  Frames that replies make necessary fill
 * theirs, too: a window update for DATA, a priority for a stream, a reset of one that has just
 * ended.  That is without a limit in practice: a client that has read megabytes of small frames at
 * once gives them all back at once.
 */
#include "io/http2/impl.h"

/* Of each kind at once. */
#define HTTP2_RESETS_MAX   200
#define HTTP2_REFUSED_MAX  100
#define HTTP2_CONTROL_MAX  100
#define HTTP2_EMPTY_MAX    100
#define HTTP2_WINDOWS_MAX  1000
#define HTTP2_PRIORITY_MAX 200

#define EARNED_MAX   (1u << 20)
#define FLOODER_PART 8u

#define C(name) offsetof(struct io_counters, http2_flood_##name)

static const struct {
	uint32_t most, rate;
	uint32_t counter;
	const char *why;
} limits[FLOODS] = {
	/* a browser that leaves a page resets all streams of it */
	[FLOOD_RESETS] = { HTTP2_RESETS_MAX, 50, C(resets), "too many streams were reset" },
	[FLOOD_STREAMS] = { HTTP2_REFUSED_MAX, 10, C(streams),
	    "too many streams at once, again and again" },
	[FLOOD_CONTROL] = { HTTP2_CONTROL_MAX, 10, C(control), "too many PING or SETTINGS frames" },
	/* without bytes, of an unknown type, resets of streams that have ended.  Chromium sends an
	 * unknown frame with each request. */
	[FLOOD_EMPTY] = { HTTP2_EMPTY_MAX, 10, C(empty), "too many frames that change nothing" },
	[FLOOD_WINDOWS] = { HTTP2_WINDOWS_MAX, 100, C(windows), "too many WINDOW_UPDATE frames" },
	[FLOOD_PRIORITY] = { HTTP2_PRIORITY_MAX, 20, C(priority),
	    "too many changes of priorities" },
	[FLOOD_HEADS] = { 0, 0, C(heads), "a request head that is far too long" },
};

/* A flood that goes on with another connection begins with little. */
static uint32_t
most(const struct http2 *h, enum http2_flood f)
{
	uint32_t n = limits[f].most;

	return (h->conf.is_flooder && n > FLOODER_PART ? n / FLOODER_PART : n);
}

void
http2_limits_init(struct http2 *h)
{
	unsigned i;

	for (i = 0; i < FLOODS; i++)
		h->bucket[i] = (struct bucket){ most(h, (enum http2_flood)i), io_now(h->io) };
}

static void
refill(struct bucket *b, enum http2_flood f, uint32_t max, uint64_t now)
{
	uint64_t more = (now - b->at_ns) / NS_PER_MS * limits[f].rate / 1000;

	if (more == 0)
		return;
	b->at_ns = now;
	more += b->left;
	if (b->left < max)
		b->left = more < max ? (uint32_t)more : max;
}

void
http2_limit_over(struct http2 *h, enum http2_flood f)
{
	if (h->over)
		return;
	h->is_flood = true;
	count_at(h->io->counters, limits[f].counter);
	http2_fail(h, NGHTTP2_ENHANCE_YOUR_CALM, limits[f].why);
}

bool
http2_limit(struct http2 *h, enum http2_flood f, unsigned n)
{
	struct bucket *b = &h->bucket[f];

	refill(b, f, most(h, f), io_now(h->io));
	if (b->left >= n) {
		b->left -= n;
		return (true);
	}
	http2_limit_over(h, f);
	return (false);
}

void
http2_limit_earn(struct http2 *h, enum http2_flood f, unsigned n)
{
	struct bucket *b = &h->bucket[f];

	if (b->left < EARNED_MAX)
		b->left += n;
}
