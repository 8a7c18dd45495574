/* server/process/resolve.c -- looks up the host names of backends again, while requests go on.
 *
 *   main thread --name--> helper process --fork--> a child asks the resolver, and may hang
 *   proxy-core/backends.h <--- main thread <------- addresses
 *        '--> each worker takes over the new list at its next request or tick
 *
 * Only the newest generation is looked after.  Bounds: RESOLVE_MAX look-ups at a time; the helper
 * ends each after HELPER_ANSWER_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proxy-core/backends.h"
#include "server/config/resources.h"
#include "server/process/impl.h"

#define LATE_MS  2000u /* after the helper's own deadline */
#define AGAIN_MS 1000u /* the helper had too much to do */

struct resolve_name {
	struct backends *list;
	unsigned place;
	uint64_t due_ns;   /* of the next look-up, or of the answer */
	int fd;            /* the answer comes here; -1: no look-up is running */
	bool failed, gone; /* the last one failed; never asked again */
};

static uint64_t
from_now(uint64_t ms)
{
	return (clock_mono_ns() + ms * NS_PER_MS);
}

static void
names_add(struct generation *g, struct backends *list)
{
	struct resolve_name *v;
	unsigned i;

	for (i = 0; list->resolve_s > 0 && i < list->places; i++) {
		if (!backends_is_name(list, i))
			continue;
		v = realloc(g->names, (g->nnames + 1) * sizeof(*v));
		if (v == NULL) {
			log_event(LOG_ERROR, NULL, "resolve.failed", LF_STR("name", list->spec[i]),
			    LF_ERR("error", -ENOMEM), LF_STR("then", "its addresses stay in use"));
			return;
		}
		g->names = v;
		v[g->nnames++] = (struct resolve_name){ .list = list,
			.place = i,
			.fd = -1,
			.due_ns = from_now(1000ull * list->resolve_s) };
	}
}

void
resolve_begin(struct generation *g)
{
	struct backends *list;
	int i;

	for (i = 0; (list = resources_backends(g->resources, i)) != NULL; i++)
		names_add(g, list);
}

void
resolve_end(struct generation *g)
{
	size_t i;

	for (i = 0; i < g->nnames; i++)
		if (g->names[i].fd >= 0)
			close(g->names[i].fd);
	free(g->names);
	g->names = NULL;
	g->nnames = 0;
}

/* ---------------------------------------------------------------- one name */

static void
name_failed(struct resolve_name *r, int err, const char *why)
{
	if (!r->failed)
		log_event(LOG_WARN, NULL, "resolve.failed", LF_STR("name", r->list->spec[r->place]),
		    LF_ERR("error", err), LF_STR("why", why),
		    LF_STR("then", "the old addresses stay in use"));
	r->failed = true;
}

static void
name_resolved(struct resolve_name *r, const struct address *v, size_t n)
{
	unsigned added, removed;
	int err = backends_replace(r->list, r->place, v, n, &added, &removed);

	if (err != 0) {
		name_failed(r, err,
		    err == -E2BIG ? "more addresses than backends are possible" : "");
		return;
	}
	if (r->failed || added + removed > 0)
		log_event(LOG_INFO, NULL, "resolve.done", LF_STR("name", r->list->spec[r->place]),
		    LF_U64("addresses", n), LF_U64("added", added), LF_U64("removed", removed));
	r->failed = false;
}

static void
name_ask(struct process *ps, struct resolve_name *r)
{
	r->fd = helper_resolve_start(ps->helper, r->list->spec[r->place]);
	if (r->fd >= 0) {
		r->due_ns = from_now(HELPER_ANSWER_MS + LATE_MS);
		return;
	}
	r->gone = r->fd == -EPIPE;
	r->due_ns = from_now(AGAIN_MS);
	if (r->fd != -EAGAIN)
		name_failed(r, r->fd, "the helper process cannot be asked");
	r->fd = -1;
}

static void
name_answer(struct resolve_name *r)
{
	static struct helper_addresses a; /* the main thread's */
	char why[HELPER_WHY_MAX];
	int n = helper_resolve_end(r->fd, &a, why);

	r->fd = -1;
	r->due_ns = from_now(n == -EAGAIN ? AGAIN_MS : 1000ull * r->list->resolve_s);
	if (n > 0)
		name_resolved(r, a.v, (size_t)n);
	else if (n != -EAGAIN)
		name_failed(r, n, why);
}

static void
name_late(struct resolve_name *r)
{
	close(r->fd);
	r->fd = -1;
	r->due_ns = from_now(1000ull * r->list->resolve_s);
	name_failed(r, -ETIMEDOUT, "the helper process does not answer");
}

/* ---------------------------------------------------------------- for the main thread */

size_t
process_resolve_poll(struct process *ps, struct pollfd p[RESOLVE_MAX], int *timeout_ms)
{
	struct generation *g = process_newest(ps);
	uint64_t now = clock_mono_ns(), next = UINT64_MAX;
	struct resolve_name *r;
	size_t n = 0;

	if (g == NULL || ps->draining)
		return (0);
	for (r = g->names; r < g->names + g->nnames; r++) {
		if (r->fd >= 0 && n < RESOLVE_MAX)
			p[n++] = (struct pollfd){ .fd = r->fd, .events = POLLIN };
		if (!r->gone && r->due_ns < next)
			next = r->due_ns;
	}
	if (next != UINT64_MAX) {
		int ms = next <= now ? 0 : (int)((next - now) / NS_PER_MS) + 1;

		if (*timeout_ms < 0 || ms < *timeout_ms)
			*timeout_ms = ms;
	}
	return (n);
}

static bool
is_readable(const struct pollfd *p, size_t n, int fd)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i].fd == fd)
			return (p[i].revents != 0);
	return (false);
}

void
process_resolve(struct process *ps, const struct pollfd *p, size_t n)
{
	struct generation *g = process_newest(ps);
	uint64_t now = clock_mono_ns();
	struct resolve_name *r;
	size_t asking = n;

	if (g == NULL || ps->draining)
		return;
	for (r = g->names; r < g->names + g->nnames; r++) {
		if (r->fd >= 0 && is_readable(p, n, r->fd))
			name_answer(r);
		else if (r->fd >= 0 && r->due_ns <= now)
			name_late(r);
		else if (r->fd < 0 && !r->gone && r->due_ns <= now && asking < RESOLVE_MAX) {
			name_ask(ps, r);
			asking++;
		}
	}
}
