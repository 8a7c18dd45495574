/* server/module/dirlisting_rules.c -- see dirlisting_rules.h */
#include "server/module/dirlisting_rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/match.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/module/module.h"
#include "server/module/rules.h"

#define MAX_AGE_DEFAULT 1u /* without dir-listing.cache */
#define MAX_AGE_CACHE   15u
#define MAX_AGE_MAX     86400u

/* ---- dir-listing.exclude */

struct dir_names {
	uint32_t refs; /* atomic: threads that list outlive a configuration */
	size_t n;
	struct match *v[];
};

struct dir_names *
dir_names_get(const void *rules)
{
	struct dir_names *d = (struct dir_names *)(uintptr_t)rules;

	if (d != NULL)
		__atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
	return (d);
}

void
dir_names_put(struct dir_names *d)
{
	size_t i;

	if (d == NULL || __atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	for (i = 0; i < d->n; i++)
		match_free(d->v[i]);
	free(d);
}

/* A name that cannot be decided is not listed. */
bool
dir_names_has(const struct dir_names *d, struct text name)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (match_run(d->v[i], name) != MATCH_NO)
			return (true);
	return (false);
}

static const void *
exclude_key(const struct conf *c)
{
	return (c->dir_exclude.n != 0 ? c->dir_exclude.v : NULL);
}

static void *
exclude_make(const struct conf *c, char *err, size_t errsize)
{
	const struct conf_list *list = &c->dir_exclude;
	struct dir_names *d = calloc(1, sizeof(*d) + list->n * sizeof(d->v[0]));
	char why[160];

	if (d == NULL)
		return (rules_no_memory(err, errsize));
	d->refs = 1;
	for (; d->n < list->n; d->n++) {
		d->v[d->n] = match_new(list->v[d->n].p, false, why, sizeof(why));
		if (d->v[d->n] == NULL) {
			snprintf(err, errsize, "\"%s\": %s", list->v[d->n].p, why);
			dir_names_put(d);
			return (NULL);
		}
	}
	return (d);
}

static void
exclude_free(void *rules)
{
	dir_names_put(rules);
}

const struct rules_kind rules_dir_exclude = {
	.directive = "dir-listing.exclude",
	.key = exclude_key,
	.make = exclude_make,
	.free = exclude_free,
};

/* ---- dir-listing.show-header, -readme */

const char *
dirlisting_file(const void *rules)
{
	const char *name = rules;

	return (name != NULL && name[0] != '\0' ? name : NULL);
}

static void *
file_make(const char *set, const char *usual, char *err, size_t errsize)
{
	char *name;

	if (strchr(set, '/') != NULL) {
		snprintf(err, errsize,
		    "\"%s\": expected \"enable\", \"disable\" or the name of a "
		    "file in the directory, without a slash",
		    set);
		return (NULL);
	}
	name = strdup(strcmp(set, "enable") == 0 ? usual : strcmp(set, "disable") == 0 ? "" : set);
	if (name == NULL)
		return (rules_no_memory(err, errsize));
	return (name);
}

static const void *
header_key(const struct conf *c)
{
	return (c->dir_header);
}

static void *
header_make(const struct conf *c, char *err, size_t errsize)
{
	return (file_make(c->dir_header, "HEADER.txt", err, errsize));
}

const struct rules_kind rules_dir_header = {
	.directive = "dir-listing.show-header",
	.key = header_key,
	.make = header_make,
	.free = free,
};

static const void *
readme_key(const struct conf *c)
{
	return (c->dir_readme);
}

static void *
readme_make(const struct conf *c, char *err, size_t errsize)
{
	return (file_make(c->dir_readme, "README.txt", err, errsize));
}

const struct rules_kind rules_dir_readme = {
	.directive = "dir-listing.show-readme",
	.key = readme_key,
	.make = readme_make,
	.free = free,
};

/* ---- dir-listing.cache */

uint64_t
dirlisting_max_age(const struct site *s)
{
	const uint64_t *age = s->rules[RULES_dir_cache];

	return (age != NULL ? *age : MAX_AGE_DEFAULT);
}

static const void *
cache_key(const struct conf *c)
{
	return (c->dir_cache.n != 0 ? c->dir_cache.v : NULL);
}

static void *
cache_make(const struct conf *c, char *err, size_t errsize)
{
	const struct conf_map *map = &c->dir_cache;
	uint64_t *age = malloc(sizeof(*age));
	bool ok = true;
	size_t i;

	if (age == NULL)
		return (rules_no_memory(err, errsize));
	*age = MAX_AGE_CACHE;
	for (i = 0; ok && i < map->n; i++) {
		if (text_eq(map->v[i].key, TEXT("max-age")))
			ok = text_u64(map->v[i].value, age) == 0 && *age <= MAX_AGE_MAX;
		else
			ok = text_eq(map->v[i].key, TEXT("path"));
	}
	if (ok)
		return (age);
	snprintf(err, errsize,
	    "\"%s\" => \"%s\": expected \"max-age\" => 0 to %u (seconds) or "
	    "\"path\" => a directory",
	    map->v[i - 1].key.p, map->v[i - 1].value.p, MAX_AGE_MAX);
	free(age);
	return (NULL);
}

const struct rules_kind rules_dir_cache = {
	.directive = "dir-listing.cache",
	.key = cache_key,
	.make = cache_make,
	.free = free,
};
