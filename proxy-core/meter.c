/* proxy-core/meter.c -- see meter.h */
#include "proxy-core/meter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct meter *meters; /* atomic; grows at its front */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* held by those who make one, never by readers */

static struct meter *
meter_new(unsigned block, const char *name)
{
	struct meter *m = calloc(1, sizeof(*m));

	if (m == NULL || (m->name = strdup(name)) == NULL) {
		free(m);
		return (NULL);
	}
	m->block = block;
	m->next = meters;
	__atomic_store_n(&meters, m, __ATOMIC_RELEASE);
	return (m);
}

struct meter *
meter_get(unsigned block, const char *name)
{
	struct meter *m;

	pthread_mutex_lock(&making);
	for (m = meters; m != NULL && (m->block != block || strcmp(m->name, name) != 0); m = m->next)
		;
	if (m == NULL)
		m = meter_new(block, name);
	pthread_mutex_unlock(&making);
	if (m != NULL)
		meter_add(m, users, 1);
	return (m);
}

void
meter_put(struct meter *m)
{
	if (m != NULL)
		meter_add(m, users, -1u);
}

struct meter *
meter_first(void)
{
	return (__atomic_load_n(&meters, __ATOMIC_ACQUIRE));
}
