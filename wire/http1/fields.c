/* wire/http1/fields.c -- see fields.h */
#include "base/must.h"
#include "wire/http1/fields.h"

#define SLOTS_MIN 16u

static size_t
slot_of(const struct fields *f, struct text name)
{
	static __thread uint64_t seed;
	uint64_t h;
	size_t i;

	if (seed == 0)
		seed = text_hash(TEXT("fields")) | 1;
	for (h = seed, i = 0; i < name.n; i++)
		h = (h ^ byte_lower(name.p[i])) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	return (h >> 40 & f->mask);
}

/* The slot of the name, or a free one for it.  At least three quarters of the slots are free, so
 * the search is short. */
static uint16_t *
place(const struct fields *f, struct text name)
{
	size_t i = slot_of(f, name);

	while (f->slot[i] != 0 && !text_ieq(f->v[f->slot[i] - 1].name, name))
		i = (i + 1) & f->mask;
	return ((uint16_t *)&f->slot[i]);
}

static void
name_hops(struct fields *f)
{
	struct text list, member;
	size_t i, k;

	for (i = fields_find(f, TEXT("Connection")); i < f->n; i = fields_next(f, i)) {
		list = f->v[i].value;
		while (text_next(&list, ',', &member)) {
			k = fields_find(f, text_trim(member));
			if (k < f->n)
				f->named[k] = f->hops = true;
		}
	}
}

/* Clears only what n fields need: all of it would be 3 KiB for each request and each reply. */
static void
clear(struct fields *f, size_t n)
{
	size_t slots = SLOTS_MIN;

	_Static_assert((4 * FIELDS_MAX & (4 * FIELDS_MAX - 1)) == 0, "a power of two");
	while (slots < 4 * n)
		slots *= 2;
	f->mask = slots - 1;
	f->hops = false;
	memset(f->slot, 0, slots * sizeof(f->slot[0]));
	memset(f->next, 0, n * sizeof(f->next[0]));
	memset(f->repeats, 0, n * sizeof(f->repeats[0]));
	memset(f->named, 0, n * sizeof(f->named[0]));
}

void
fields_index(struct fields *f, const struct proxy_field *v, size_t n)
{
	uint16_t last[FIELDS_MAX], *p;
	size_t i;

	must(n <= FIELDS_MAX);
	clear(f, n);
	f->v = v;
	f->n = n;
	for (i = 0; i < n; i++) {
		p = place(f, v[i].name);
		if (*p == 0) {
			*p = (uint16_t)(i + 1);
			last[i] = (uint16_t)i;
			continue;
		}
		f->repeats[i] = true;
		f->next[last[*p - 1]] = (uint16_t)(i + 1);
		last[*p - 1] = (uint16_t)i;
	}
	name_hops(f);
}

size_t
fields_find(const struct fields *f, struct text name)
{
	const uint16_t *p = place(f, name);

	return (*p != 0 ? *p - 1u : f->n);
}

size_t
fields_next(const struct fields *f, size_t i)
{
	return (f->next[i] != 0 ? f->next[i] - 1u : f->n);
}

bool
fields_is_hop_name(struct text name)
{
	static const struct text names[] = { TEXT("Connection"), TEXT("Keep-Alive"), TEXT("TE"),
		TEXT("Trailer"), TEXT("Transfer-Encoding"), TEXT("Upgrade"), TEXT("Expect") };

	return (text_is_one_of(name, names, NELEM(names)) || text_istarts(name, TEXT("Proxy-")));
}

/* A client may not remove Host, nor what the configuration has set for the application. */
bool
fields_is_hop(const struct fields *f, size_t i)
{
	struct text name = f->v[i].name;

	return (fields_is_hop_name(name) || (f->hops && f->named[fields_find(f, name)] &&
						!f->v[i].set && !text_ieq(name, TEXT("Host"))));
}

/* Readers may have used their values before the body, or take both for one (RFC 9110 6.5.1). */
bool
fields_may_trail(struct text name)
{
	static const struct text never[] = { TEXT("Content-Length"), TEXT("Content-Type"),
		TEXT("Content-Encoding"), TEXT("Content-Range"), TEXT("Content-Location"),
		TEXT("Content-Language"), TEXT("Content-Disposition"), TEXT("Host"), TEXT("Range"),
		TEXT("Accept-Ranges"), TEXT("Cookie"), TEXT("Set-Cookie"), TEXT("Authorization"),
		TEXT("WWW-Authenticate"), TEXT("Cache-Control"), TEXT("Pragma"), TEXT("Expires"),
		TEXT("Age"), TEXT("Vary"), TEXT("Warning"), TEXT("Date"), TEXT("Location"),
		TEXT("Retry-After"), TEXT("Max-Forwards"), TEXT("Status"), TEXT("Server") };

	return (!fields_is_hop_name(name) && !text_is_one_of(name, never, NELEM(never)) &&
		!text_istarts(name, TEXT("If-")) && !header_is_control(name));
}
