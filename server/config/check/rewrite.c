/* server/config/check/rewrite.c -- see rewrite.h */
#include "server/config/check/rewrite.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/match.h"
#include "base/must.h"
#include "wire/http1/headers.h"

struct rule {
	struct text name, replacement; /* owned by the configuration */
	struct match *match;
};

struct rewrite {
	size_t n;
	struct rule rule[];
};

bool
rewrite_is_special(struct text name)
{
	static const struct text names[] = { TEXT("_uri"), TEXT("_docroot"), TEXT("_pathinfo"),
		TEXT("_scriptname") };
	size_t i;

	for (i = 0; i < NELEM(names); i++)
		if (text_eq(names[i], name))
			return (true);
	return (false);
}

static bool
rule_make(struct rule *r, const struct conf_pair *p, char *err, size_t errsize)
{
	char why[160];

	if (!rewrite_is_special(p->key) && (!header_is_token(p->key) || p->key.p[0] == '_')) {
		snprintf(err, errsize,
		    "expected the name of a header field, _uri, _docroot, _pathinfo or "
		    "_scriptname, got \"%.80s\"",
		    p->key.p);
		return (false);
	}
	if (p->map == NULL || p->map->n != 1) {
		snprintf(err, errsize, "\"%s\" needs exactly one ( \"regex\" => \"replacement\" )",
		    p->key.p);
		return (false);
	}
	r->name = p->key;
	r->replacement = p->map->v[0].value;
	r->match = match_new(p->map->v[0].key.p, false, why, sizeof(why));
	if (r->match == NULL)
		snprintf(err, errsize, "\"%s\": %s", p->map->v[0].key.p, why);
	return (r->match != NULL);
}

struct rewrite *
rewrite_new(const struct conf_map *map, char *err, size_t errsize)
{
	struct rewrite *rw = calloc(1, sizeof(*rw) + map->n * sizeof(rw->rule[0]));

	if (rw == NULL) {
		snprintf(err, errsize, "not enough memory");
		return (NULL);
	}
	for (; rw->n < map->n; rw->n++) {
		if (!rule_make(&rw->rule[rw->n], &map->v[rw->n], err, errsize)) {
			rewrite_free(rw);
			return (NULL);
		}
	}
	return (rw);
}

void
rewrite_free(struct rewrite *rw)
{
	size_t i;

	if (rw == NULL)
		return;
	for (i = 0; i < rw->n; i++)
		match_free(rw->rule[i].match);
	free(rw);
}

/* Next character or $x of the replacement; *rest moves on. */
static struct text
next_part(struct text *rest, const struct text cap[MATCH_CAPTURES])
{
	struct text part = text_take(rest, 1);

	if (part.p[0] == '$' && rest->n > 0) {
		char c = rest->p[0];

		if (c == '$')
			return (text_take(rest, 1));
		if (c >= '0' && c <= '9') {
			text_take(rest, 1);
			return (cap[c - '0']);
		}
	}
	return (part);
}

static struct text
expand(struct text replacement, const struct text cap[MATCH_CAPTURES], struct arena *arena)
{
	struct text rest = replacement, part;
	size_t n = 0;
	char *dst, *p;

	while (rest.n != 0)
		n += next_part(&rest, cap).n;
	dst = p = arena_get(arena, n + 1);
	if (dst == NULL)
		return (TEXT_NONE);
	for (rest = replacement; rest.n != 0; p += part.n) {
		part = next_part(&rest, cap);
		if (part.n != 0)
			memcpy(p, part.p, part.n);
	}
	*p = '\0';
	return ((struct text){ dst, n });
}

struct text
rewrite_value(const struct rewrite *rw, struct text name, struct text value, struct arena *arena)
{
	struct text cap[MATCH_CAPTURES];
	size_t i;

	for (i = 0; rw != NULL && i < rw->n; i++) {
		if (!text_ieq(rw->rule[i].name, name))
			continue;
		switch (match_capture(rw->rule[i].match, value, cap)) {
		case MATCH_YES: return (expand(rw->rule[i].replacement, cap, arena));
		case MATCH_FAILED: return (TEXT_NONE);
		case MATCH_NO: break;
		}
	}
	return (value);
}

struct text
rewrite_name(const struct rewrite *rw, size_t i)
{
	return (rw != NULL && i < rw->n ? rw->rule[i].name : TEXT_NONE);
}
