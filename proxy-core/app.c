#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/must.h"
#include "proxy-core/app.h"

struct app {
	struct app *next;
	char *address;
	unsigned users;
	int idle;              /* these three are read by all workers, without the lock */
	uint64_t last_kept_ns;
	uint64_t crowded_until_ns;
	uint64_t crowded_ms;   /* how long the last time was; 0: never */
};

static struct app *apps;
static pthread_mutex_t apps_lock = PTHREAD_MUTEX_INITIALIZER;

static struct app *
app_new(const char *address)
{
	struct app *a = calloc(1, sizeof(*a));

	if (a == NULL || (a->address = strdup(address)) == NULL) {
		free(a);
		return (NULL);
	}
	a->next = apps;
	apps = a;
	return (a);
}

struct app *
app_get(const char *address)
{
	struct app *a;

	pthread_mutex_lock(&apps_lock);
	for (a = apps; a != NULL && strcmp(a->address, address) != 0; a = a->next)
		;
	if (a == NULL)
		a = app_new(address);
	if (a != NULL)
		a->users++;
	pthread_mutex_unlock(&apps_lock);
	return (a);
}

static void
app_free(struct app *a)
{
	struct app **p;

	for (p = &apps; *p != a; p = &(*p)->next)
		;
	*p = a->next;
	free(a->address);
	free(a);
}

void
app_put(struct app **ap)
{
	struct app *a = *ap;

	*ap = NULL;
	if (a == NULL)
		return;
	pthread_mutex_lock(&apps_lock);
	must(a->users > 0);
	if (--a->users == 0)
		app_free(a);
	pthread_mutex_unlock(&apps_lock);
}

void
app_idle_add(struct app *a, int n)
{
	__atomic_fetch_add(&a->idle, n, __ATOMIC_RELAXED);
}

void
app_kept(struct app *a, uint64_t now_ns)
{
	__atomic_store_n(&a->last_kept_ns, now_ns, __ATOMIC_RELAXED);
}

bool
app_keeps_since(const struct app *a, uint64_t since_ns)
{
	return (__atomic_load_n(&a->idle, __ATOMIC_RELAXED) > 0 ||
	    __atomic_load_n(&a->last_kept_ns, __ATOMIC_RELAXED) > since_ns);
}

bool
app_crowded(const struct app *a, uint64_t now_ns)
{
	return (now_ns < __atomic_load_n(&a->crowded_until_ns, __ATOMIC_RELAXED));
}

/* Longer each time it comes back soon; a long quiet time starts over. */
static uint64_t
next_while(const struct app *a, uint64_t now_ns)
{
	uint64_t quiet_ms = (now_ns - a->crowded_until_ns) / NS_PER_MS;

	if (a->crowded_ms == 0 || quiet_ms > 4 * a->crowded_ms)
		return (APP_CROWDED_MIN_MS);
	return (a->crowded_ms * 2 < APP_CROWDED_MAX_MS ? a->crowded_ms * 2 : APP_CROWDED_MAX_MS);
}

bool
app_set_crowded(struct app *a, uint64_t now_ns, bool *first)
{
	bool news;

	pthread_mutex_lock(&apps_lock);
	news = !app_crowded(a, now_ns);
	*first = a->crowded_ms == 0;
	if (news) {
		a->crowded_ms = next_while(a, now_ns);
		__atomic_store_n(
		    &a->crowded_until_ns, now_ns + a->crowded_ms * NS_PER_MS, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&apps_lock);
	return (news);
}
