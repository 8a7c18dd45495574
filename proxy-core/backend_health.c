/* proxy-core/backend_health.c -- see backend_health.h */
#include "proxy-core/backend_health.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"

const char *const backend_state_names[BACKEND_NSTATES] = {
	[BACKEND_UP] = "up",
	[BACKEND_SLOW_START] = "slow-start",
	[BACKEND_FAILING] = "failing",
	[BACKEND_UNREACHABLE] = "unreachable",
	[BACKEND_CHECK_FAILED] = "check-failed",
};

const char *const backend_fault_names[BACKEND_NFAULTS] = {
#define F(field, name) name,
	BACKEND_FAULTS(F)
#undef F
};

#define OUT_MAX_NS (60 * NS_PER_S)

#define put(b, field, v) __atomic_store_n(&(b)->field, (v), __ATOMIC_RELAXED)

static uint64_t
later(uint64_t a, uint64_t b)
{
	return (a > b ? a : b);
}

/* ---------------------------------------------------------------- a reason in one word */

static uint64_t
why_pack(struct backend_why w)
{
	return ((uint64_t)(uint32_t)w.number << 32 | (unsigned)w.connecting << 8 | w.fault);
}

static struct backend_why
why_unpack(uint64_t v)
{
	return ((struct backend_why){ v & 255, v >> 8 & 1, (int)(uint32_t)(v >> 32) });
}

static const char *
error_text(int err)
{
	const char *s;

	if (err == ECONNREFUSED)
		return ("refused");
	s = strerrordesc_np(err);
	return (s != NULL ? s : "failed");
}

static void
why_text(uint64_t packed, char *out, size_t size)
{
	struct backend_why w = why_unpack(packed);
	const char *stage = w.connecting ? "connect: " : "";
	unsigned s = ((unsigned)w.number + 999) / 1000;

	switch (w.fault) {
	case BACKEND_FAULT_timeout: snprintf(out, size, "%sno answer in %u s", stage, s); break;
	case BACKEND_FAULT_bad: snprintf(out, size, "malformed reply"); break;
	case BACKEND_FAULT_status: snprintf(out, size, "HTTP %d", w.number); break;
	case BACKEND_FAULT_hangup: snprintf(out, size, "%shung up", stage); break;
	default: snprintf(out, size, "%s%s", stage, error_text(w.number)); break;
	}
}

/* ---------------------------------------------------------------- what happened */

void
backend_fault(struct backend *b, struct backend_why why)
{
	backend_add(b, faults[why.fault], 1);
	put(b, last_why, why_pack(why));
}

void
backend_down(struct backend *b, struct backend_why why, bool again, uint64_t now)
{
	put(b, down_why, why_pack(why));
	if (!again && __atomic_fetch_add(&b->down, 1, __ATOMIC_RELAXED) == 0)
		put(b, down_since_ns, now);
}

void
backend_reached(struct backend *b, uint64_t now)
{
	if (__atomic_sub_fetch(&b->down, 1, __ATOMIC_RELAXED) == 0)
		put(b, down_ended_ns, now);
}

void
backend_set_sick(struct backend *b, bool sick, int status, uint64_t now)
{
	if (sick)
		put(b, sick_why,
		    status != 0
			? why_pack((struct backend_why){ BACKEND_FAULT_status, false, status })
			: backend_read(b, last_why));
	if (sick == (backend_read(b, sick) != 0))
		return;
	if (sick)
		put(b, sick_since_ns, now);
	else
		put(b, sick_ended_ns, now);
	put(b, sick, (unsigned)sick);
}

void
backend_slow(struct backend *b, uint64_t now, uint64_t until)
{
	put(b, slow_since_ns, now);
	put(b, slow_until_ns, until);
}

/* ---------------------------------------------------------------- strikes */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the strikes of all backends */

static bool
coming_back(const struct backend *b, uint64_t now)
{
	return (b->failing_until_ns != 0 && now < b->failing_until_ns + b->failing_slow_ns);
}

/* requests counts those that have ended, so not the one that has just failed. */
static bool
is_out(struct backend *b, const struct backend_strikes *s, uint64_t now)
{
	uint64_t done = backend_read(b, requests) - b->strikes_requests;

	if (b->strikes == 0 || (now - b->strikes_since_ns > s->in_ns && done > b->strikes)) {
		b->strikes = 0;
		b->strikes_since_ns = now;
		b->strikes_requests = backend_read(b, requests);
		done = 0;
	}
	b->strikes++;
	return ((b->strikes >= s->max || coming_back(b, now)) && 4 * b->strikes > done);
}

static void
take_out(struct backend *b, struct backend_why why, const struct backend_strikes *s, uint64_t now)
{
	uint64_t longest = later(s->in_ns, OUT_MAX_NS), twice = 2 * b->out_ns;

	b->out_ns = coming_back(b, now) ? (twice < longest ? twice : longest) : s->in_ns;
	b->strikes = 0;
	put(b, failing_since_ns, now);
	put(b, failing_why, why_pack(why));
	put(b, failing_slow_ns, s->slow_ns);
	put(b, failing_until_ns, now + b->out_ns);
	put(b, slow_since_ns, now + b->out_ns);
	put(b, slow_until_ns, now + b->out_ns + s->slow_ns);
}

bool
backend_strike(struct backend *b, struct backend_why why, const struct backend_strikes *s,
    uint64_t now, uint64_t *until)
{
	bool out;

	if (s->max == 0)
		return (false);
	pthread_mutex_lock(&lock);
	out = now >= b->failing_until_ns && is_out(b, s, now);
	if (out)
		take_out(b, why, s, now);
	*until = b->failing_until_ns;
	pthread_mutex_unlock(&lock);
	return (out);
}

bool
backend_failing(const struct backend *b, uint64_t now)
{
	return (now < backend_read(b, failing_until_ns));
}

unsigned
backend_share(const struct backend *b, uint64_t now, unsigned least)
{
	uint64_t back = backend_read(b, failing_until_ns), all = backend_read(b, failing_slow_ns);

	if (back == 0 || all == 0 || now >= back + all)
		return (100);
	return (now < back ? least : (unsigned)(least + (100 - least) * (now - back) / all));
}

void
backend_forget_health(struct backend *b)
{
	put(b, sick, 0);
	put(b, checked_ns, 0);
	put(b, good_ns, 0);
	pthread_mutex_lock(&lock);
	b->strikes = 0;
	put(b, failing_until_ns, 0);
	put(b, slow_until_ns, 0);
	pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- what is so now */

static enum backend_state
state_of(const struct backend *b, uint64_t now)
{
	if (backend_read(b, sick) != 0)
		return (BACKEND_CHECK_FAILED);
	if (backend_read(b, down) > 0)
		return (BACKEND_UNREACHABLE);
	if (now < backend_read(b, failing_until_ns))
		return (BACKEND_FAILING);
	return (now < backend_read(b, slow_until_ns) ? BACKEND_SLOW_START : BACKEND_UP);
}

/* No event marks the end of such a time, so the latest end counts. */
static uint64_t
up_since(const struct backend *b)
{
	uint64_t since = later(backend_read(b, down_ended_ns), backend_read(b, sick_ended_ns));

	since = later(since, backend_read(b, failing_until_ns));
	since = later(since, backend_read(b, slow_until_ns));
	return (later(since, b->made_ns));
}

void
backend_health(const struct backend *b, uint64_t now, struct backend_health *h)
{
	h->state = state_of(b, now);
	h->reason[0] = '\0';
	switch (h->state) {
	case BACKEND_CHECK_FAILED:
		h->since_ns = backend_read(b, sick_since_ns);
		why_text(backend_read(b, sick_why), h->reason, sizeof(h->reason));
		break;
	case BACKEND_UNREACHABLE:
		h->since_ns = backend_read(b, down_since_ns);
		why_text(backend_read(b, down_why), h->reason, sizeof(h->reason));
		break;
	case BACKEND_FAILING:
		h->since_ns = backend_read(b, failing_since_ns);
		why_text(backend_read(b, failing_why), h->reason, sizeof(h->reason));
		break;
	case BACKEND_SLOW_START: h->since_ns = backend_read(b, slow_since_ns); break;
	default: h->since_ns = up_since(b); break;
	}
}
