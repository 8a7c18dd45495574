/* proxy-core/backend.c -- see backend.h */
#include "proxy-core/backend.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/must.h"
#include "proxy-core/backend_health.h"

static struct backend *backends; /* atomic; grows at its front */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------------- the list */

struct backend *
backend_first(void)
{
	return (__atomic_load_n(&backends, __ATOMIC_ACQUIRE));
}

static struct backend *
backend_new(unsigned block, const char *name)
{
	struct backend *b = calloc(1, sizeof(*b)), *same;

	if (b == NULL || (b->name = strdup(name)) == NULL) {
		free(b);
		return (NULL);
	}
	for (same = backends; same != NULL && strcmp(same->name, name) != 0; same = same->next)
		;
	b->app = same != NULL ? same->app : b;
	b->block = block;
	b->made_ns = clock_mono_ns();
	b->next = backends;
	__atomic_store_n(&backends, b, __ATOMIC_RELEASE);
	return (b);
}

static bool
has_address(const struct backend *b, const struct address *a)
{
	size_t i;

	for (i = 0; i < b->naddress; i++)
		if (strcmp(b->address[i].name, a->name) == 0)
			return (true);
	return (false);
}

/* Resolvers rotate their answers, so the order does not count. */
static bool
has_addresses(const struct backend *b, const struct address *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!has_address(b, &v[i]))
			return (false);
	return (b->naddress == n);
}

static int
set_addresses(struct backend *b, const struct address *v, size_t n)
{
	struct address *copy;

	if (has_addresses(b, v, n))
		return (0);
	copy = calloc(n, sizeof(*v));
	if (copy == NULL)
		return (-ENOMEM);
	memcpy(copy, v, n * sizeof(*v));
	free(b->address);
	b->address = copy;
	b->naddress = n;
	backend_add(b, moves, 1);
	return (1);
}

int
backend_move(struct backend *b, const struct address *v, size_t n)
{
	int changed;

	must(n > 0);
	pthread_mutex_lock(&lock);
	changed = set_addresses(b, v, n);
	pthread_mutex_unlock(&lock);
	return (changed);
}

struct backend *
backend_get(unsigned block, const char *name, const struct address *v, size_t n)
{
	struct backend *b;

	must(n > 0);
	pthread_mutex_lock(&lock);
	for (b = backends; b != NULL && (b->block != block || strcmp(b->name, name) != 0);
	     b = b->next)
		;
	if (b == NULL)
		b = backend_new(block, name);
	if (b != NULL && set_addresses(b, v, n) < 0)
		b = NULL;
	if (b != NULL)
		backend_use(b);
	pthread_mutex_unlock(&lock);
	return (b);
}

void
backend_use(struct backend *b)
{
	backend_add(b, users, 1);
}

static bool
app_is_used(const struct backend *app)
{
	const struct backend *b;

	for (b = backends; b != NULL; b = b->next)
		if (b->app == app && backend_read(b, users) > 0)
			return (true);
	return (false);
}

void
backend_put(struct backend *b)
{
	pthread_mutex_lock(&lock);
	must(backend_read(b, users) > 0);
	if (__atomic_sub_fetch(&b->users, 1, __ATOMIC_RELAXED) == 0)
		backend_forget_health(b);
	if (!app_is_used(b->app)) {
		b->app->crowded_ms = 0;
		b->app->told = false;
		__atomic_store_n(&b->app->kept_seen, false, __ATOMIC_RELAXED);
		__atomic_store_n(&b->app->slowest_ns, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&b->app->patience_ns, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&b->app->crowded_until_ns, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&b->app->last_kept_ns, 0, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
}

struct address *
backend_addresses(const struct backend *b, size_t *n)
{
	struct address *copy;

	pthread_mutex_lock(&lock);
	*n = b->naddress;
	copy = calloc(*n, sizeof(*copy));
	if (copy != NULL)
		memcpy(copy, b->address, *n * sizeof(*copy));
	pthread_mutex_unlock(&lock);
	return (copy);
}

/* ---------------------------------------------------------------- crowded */

void
backend_kept(struct backend *b, uint64_t now_ns)
{
	__atomic_store_n(&b->app->last_kept_ns, now_ns, __ATOMIC_RELAXED);
}

bool
backend_keeps_since(const struct backend *b, uint64_t since_ns)
{
	const struct backend *other;

	for (other = backend_first(); other != NULL; other = other->next)
		if (other->app == b->app && backend_read(other, sockets[LEASE_IDLE]) > 0)
			return (true);
	return (backend_read(b->app, last_kept_ns) > since_ns);
}

bool
backend_crowded(const struct backend *b, uint64_t now_ns)
{
	return (now_ns < backend_read(b->app, crowded_until_ns));
}

/* Doubles if it comes back soon; starts over after a long quiet time. */
static uint64_t
next_while(const struct backend *app, uint64_t now_ns)
{
	uint64_t quiet_ms = (now_ns - app->crowded_until_ns) / NS_PER_MS,
		 next = app->crowded_ms * 2;

	if (app->crowded_ms == 0 || quiet_ms > 4 * app->crowded_ms)
		return (BACKEND_CROWDED_MIN_MS);
	return (next < BACKEND_CROWDED_MAX_MS ? next : BACKEND_CROWDED_MAX_MS);
}

bool
backend_set_crowded(struct backend *b, uint64_t now_ns, bool sure, bool *news)
{
	struct backend *app = b->app;
	bool begins;

	pthread_mutex_lock(&lock);
	begins = !backend_crowded(app, now_ns);
	if (begins) {
		app->crowded_ms = next_while(app, now_ns);
		__atomic_store_n(&app->crowded_until_ns, now_ns + app->crowded_ms * NS_PER_MS,
		    __ATOMIC_RELAXED);
	}
	*news = begins && !app->told && (sure || app->crowded_ms > BACKEND_CROWDED_MIN_MS);
	app->told = app->told || *news;
	pthread_mutex_unlock(&lock);
	return (begins);
}

/* ---------------------------------------------------------------- slow */

#define PATIENCE_MAX_NS (10 * NS_PER_S) /* a thread that is stuck for longer does not count */

#define set(b, field, v) __atomic_store_n(&(b)->app->field, (v), __ATOMIC_RELAXED)

/* Two workers may add at the same time; one of the two values may then be lost. */
void
backend_measure(struct backend *b, uint64_t waited_ns, bool kept)
{
	uint64_t slowest = backend_read(b->app, slowest_ns);
	bool kept_seen = backend_read(b->app, kept_seen);

	if (!kept && kept_seen)
		return;
	if (kept && !kept_seen)
		set(b, kept_seen, true);
	set(b, slowest_ns, waited_ns > slowest ? waited_ns : slowest - (slowest - waited_ns) / 64);
}

void
backend_mistook(struct backend *b, uint64_t waited_ns)
{
	uint64_t ns = 4 * waited_ns;

	if (ns > PATIENCE_MAX_NS)
		ns = PATIENCE_MAX_NS;
	if (ns > backend_read(b->app, patience_ns))
		set(b, patience_ns, ns);
}

uint64_t
backend_stall_ns(const struct backend *b, uint64_t least)
{
	uint64_t slowest = 4 * backend_read(b->app, slowest_ns),
		 patience = backend_read(b->app, patience_ns);

	if (slowest < patience)
		slowest = patience;
	return (slowest > least ? slowest : least);
}
