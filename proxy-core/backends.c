/* proxy-core/backends.c -- see backends.h */
#include "proxy-core/backends.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include "base/must.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists of all blocks */

/* Takes over one use of the backend. */
static int
append(struct backends *list, struct backend *b, unsigned weight, unsigned place)
{
	if (b == NULL)
		return (-ENOMEM);
	list->v[list->n] = b;
	list->weight[list->n] = weight;
	list->place[list->n++] = place;
	return (0);
}

/* A numeric address has only one name, whatever the setting. */
static bool
named_by_address(const char *spec, bool split)
{
	struct address a;

	return (split || address_parse(spec, &a) == 0);
}

bool
backends_is_name(const struct backends *list, unsigned place)
{
	struct address a;

	return (address_parse(list->spec[place], &a) == -ENOENT);
}

int
backends_add(struct backends *list, const char *spec, const struct address *v, size_t n,
    unsigned weight)
{
	unsigned place = list->places;
	size_t i, each = list->split ? 1 : n;
	int err = 0;

	if (place == BACKENDS_MAX)
		return (-E2BIG);
	list->spec[list->places++] = spec;
	for (i = 0; i < n && err == 0; i += each) {
		if (list->n == BACKENDS_MAX)
			return (-E2BIG);
		err = append(list,
		    backend_get(list->block, named_by_address(spec, list->split) ? v[i].name : spec,
			&v[i], each),
		    weight, place);
	}
	return (err);
}

void
backends_put(struct backends *list)
{
	while (list->n > 0)
		backend_put(list->v[--list->n]);
	list->places = 0;
}

void
backends_copy(const struct backends *list, struct backends *to)
{
	pthread_mutex_lock(&lock);
	*to = *list;
	pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- a name has other addresses */

static const struct address *
address_find(const struct address *v, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(v[i].name, name) == 0)
			return (&v[i]);
	return (NULL);
}

static bool
has_place(const struct backends *list, unsigned place, const char *name)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (list->place[i] == place && strcmp(list->v[i]->name, name) == 0)
			return (true);
	return (false);
}

/* The backends of the place: those that stay, then the new ones. */
static int
append_place(struct backends *now, const struct backends *was, unsigned place,
    const struct address *v, size_t n, unsigned weight, unsigned *added)
{
	size_t i;
	int err = 0;

	for (i = 0; i < was->n; i++)
		if (was->place[i] == place && address_find(v, n, was->v[i]->name) != NULL) {
			backend_use(was->v[i]);
			(void)append(now, was->v[i], weight, place);
		}
	for (i = 0; i < n && err == 0; i++) {
		if (has_place(now, place, v[i].name))
			continue;
		if (now->n == BACKENDS_MAX)
			return (-E2BIG);
		err = append(now, backend_get(was->block, v[i].name, &v[i], 1), weight, place);
		(*added)++;
	}
	return (err);
}

static int
append_others(struct backends *now, const struct backends *was, unsigned from, unsigned below)
{
	size_t i;

	for (i = 0; i < was->n; i++) {
		if (was->place[i] < from || was->place[i] >= below)
			continue;
		if (now->n == BACKENDS_MAX)
			return (-E2BIG);
		backend_use(was->v[i]);
		(void)append(now, was->v[i], was->weight[i], was->place[i]);
	}
	return (0);
}

static size_t
first_of(const struct backends *list, unsigned place)
{
	size_t i = 0;

	while (list->place[i] != place)
		must(++i < list->n);
	return (i);
}

static int
replace_split(struct backends *list, unsigned place, const struct address *v, size_t n,
    unsigned *added, unsigned *removed)
{
	struct backends now = *list, was;
	int err;

	now.n = 0;
	err = append_others(&now, list, 0, place);
	if (err == 0)
		err = append_place(&now, list, place, v, n, list->weight[first_of(list, place)],
		    added);
	if (err == 0)
		err = append_others(&now, list, place + 1, list->places);
	*removed = (unsigned)(list->n + *added - now.n);
	if (err != 0 || (*added == 0 && *removed == 0)) {
		backends_put(&now);
		return (err);
	}
	pthread_mutex_lock(&lock);
	was = *list;
	memcpy(list, &now, offsetof(struct backends, version));
	pthread_mutex_unlock(&lock);
	backends_put(&was);
	return (0);
}

int
backends_replace(struct backends *list, unsigned place, const struct address *v, size_t n,
    unsigned *added, unsigned *removed)
{
	int err;

	must(n > 0 && place < list->places);
	*added = *removed = 0;
	if (list->split) {
		err = replace_split(list, place, v, n, added, removed);
	} else {
		err = backend_move(list->v[first_of(list, place)], v, n);
		*added = *removed = err > 0;
	}
	if (err < 0)
		*added = *removed = 0;
	if (*added + *removed > 0) {
		pthread_mutex_lock(&lock);
		__atomic_add_fetch(&list->version, 1, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&lock);
	}
	return (err < 0 ? err : 0);
}
