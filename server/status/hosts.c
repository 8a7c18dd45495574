/* server/status/hosts.c -- see hosts.h */
#include "server/status/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"

_Static_assert(HOSTS_MAX < HOSTS_SLOTS && HOSTS_MAX < UINT8_MAX, "a free slot ends a search");

static struct text
without_port(struct text host)
{
	struct text name, port;

	return (address_cut(host, &name, &port) ? name : host);
}

/* FNV-1a */
static unsigned
first_slot(struct text name)
{
	uint32_t h = 2166136261u;
	size_t i;

	for (i = 0; i < name.n; i++)
		h = (h ^ (unsigned char)name.p[i]) * 16777619u;
	return ((h ^ h >> 16) % HOSTS_SLOTS);
}

/* The slot that has it, or the free one where it belongs. */
static unsigned
slot_of(const struct hosts *h, struct text name)
{
	unsigned i = first_slot(name), at;

	while ((at = __atomic_load_n(&h->slot[i], __ATOMIC_ACQUIRE)) != 0 &&
	       !text_eq(name, text_of(h->name[at - 1])))
		i = (i + 1) % HOSTS_SLOTS;
	return (i);
}

void
hosts_add(struct hosts *h, struct text host)
{
	struct text name = without_port(host);
	unsigned i;

	if (h->n == HOSTS_MAX || name.n == 0 || h->slot[i = slot_of(h, name)] != 0)
		return;
	h->name[h->n] = strndup(name.p, name.n);
	if (h->name[h->n] == NULL)
		return;
	__atomic_store_n(&h->n, h->n + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&h->slot[i], (uint8_t)h->n, __ATOMIC_RELEASE);
}

unsigned
hosts_find(const struct hosts *h, struct text host)
{
	unsigned at = __atomic_load_n(&h->slot[slot_of(h, without_port(host))], __ATOMIC_ACQUIRE);

	return (at != 0 ? at - 1 : HOSTS_MAX);
}

unsigned
hosts_count(const struct hosts *h)
{
	return (__atomic_load_n(&h->n, __ATOMIC_ACQUIRE));
}

unsigned
hosts_next(const struct hosts *h, unsigned number)
{
	return (number + 1 == hosts_count(h) ? HOSTS_MAX : number + 1);
}

const char *
hosts_name(const struct hosts *h, unsigned number)
{
	return (number < HOSTS_MAX ? h->name[number] : "(other)");
}

void
hosts_free(struct hosts *h)
{
	while (h->n > 0)
		free((char *)h->name[--h->n]);
}
