/* server/module/pattern.c -- see pattern.h */
#include "server/module/pattern.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/match.h"
#include "base/must.h"
#include "server/config/config.h"
#include "wire/base64url.h"
#include "wire/urlpath.h"
#include "server/module/module.h"

enum what { LITERAL, CAPTURE, CONDITION, SCHEME, AUTHORITY, PORT, PATH, QUERY, QSA };

/* of a result while it is made: an escape needs three bytes for each until it is done */
#define ROOM_MAX (4u * PATTERN_MAX)

#define LOWER  0x100u
#define UPPER  0x200u
#define ENCODE 0x400u
#define DECODE 0x800u
#define ESCAPE 0x1000u /* the low byte is the argument of urlpath_escape() */

struct pattern_part {
	enum what what;
	unsigned how;
	unsigned number;     /* of a capture */
	struct text literal; /* of the configuration */
};

struct pattern_rule {
	struct match *match;
	struct pattern_part *part;
	size_t nparts;
};

struct patterns {
	bool uses_condition;
	size_t n;
	struct pattern_rule rule[];
};

static const struct {
	struct text name;
	unsigned how;
} modifiers[] = {
	{ TEXT("esc:"), ESCAPE },
	{ TEXT("escape:"), ESCAPE },
	{ TEXT("escnde:"), ESCAPE | URL_ESCAPES },
	{ TEXT("escpsnde:"), ESCAPE | URL_ESCAPES | URL_SLASH },
	{ TEXT("noesc:"), 0 },
	{ TEXT("noescape:"), 0 },
	{ TEXT("tolower:"), LOWER },
	{ TEXT("toupper:"), UPPER },
	{ TEXT("encb64u:"), ENCODE },
	{ TEXT("decb64u:"), DECODE },
};

static const struct {
	struct text name;
	enum what what;
} names[] = {
	{ TEXT("url.scheme"), SCHEME },
	{ TEXT("url.authority"), AUTHORITY },
	{ TEXT("url.port"), PORT },
	{ TEXT("url.path"), PATH },
	{ TEXT("url.query"), QUERY },
	{ TEXT("qsa"), QSA },
};

/* ---- compiling */

static bool
read_name(struct pattern_part *p, struct text name, char mark)
{
	uint64_t number;
	size_t i;

	if (text_u64(name, &number) == 0 && number < MATCH_CAPTURES) {
		p->what = mark == '$' ? CAPTURE : CONDITION;
		p->number = (unsigned)number;
		return (true);
	}
	for (i = 0; i < NELEM(names); i++) {
		if (!text_eq(name, names[i].name))
			continue;
		p->what = names[i].what;
		return (true);
	}
	return (false);
}

static bool
read_modifier(struct pattern_part *p, struct text *name)
{
	size_t i;

	for (i = 0; i < NELEM(modifiers); i++) {
		if (!text_starts(*name, modifiers[i].name))
			continue;
		text_take(name, modifiers[i].name.n);
		p->how |= modifiers[i].how;
		return (true);
	}
	return (false);
}

/* Reads "${...}" from the front.  False: it is unknown. */
static bool
read_braces(struct pattern_part *p, struct text *rest)
{
	char mark = text_take(rest, 2).p[0];
	const char *end = memchr(rest->p, '}', rest->n);
	struct text name;

	if (end == NULL)
		return (false);
	name = text_take(rest, (size_t)(end - rest->p));
	text_take(rest, 1);
	*p = (struct pattern_part){ .what = LITERAL };
	while (read_modifier(p, &name))
		;
	return (read_name(p, name, mark));
}

/* The next part of a replacement; *rest moves on.  False: an unknown "${...}". */
static bool
read_part(struct pattern_part *p, struct text *rest)
{
	struct text t = *rest;
	size_t n = 0;

	while (n < t.n && t.p[n] != '$' && t.p[n] != '%')
		n++;
	if (n == 0 && t.n > 1 && t.p[1] == '{')
		return (read_braces(p, rest));
	if (n == 0 && t.n > 1 && byte_is_digit(t.p[1])) {
		text_take(rest, 2);
		*p = (struct pattern_part){ .what = t.p[0] == '$' ? CAPTURE : CONDITION,
			.number = (unsigned)(t.p[1] - '0') };
		return (true);
	}
	if (n == 0) /* "$$" is a dollar, "$a" is itself */
		text_take(rest, t.n > 1 && t.p[1] == t.p[0]);
	*p = (struct pattern_part){ .what = LITERAL, .literal = text_take(rest, n != 0 ? n : 1) };
	return (true);
}

static bool
rule_make(struct patterns *ps, struct pattern_rule *r, const struct conf_pair *pair, char *err,
    size_t errsize)
{
	struct text rest = pair->value;
	char why[128];

	r->part = calloc(rest.n + 1, sizeof(*r->part));
	if (r->part == NULL) {
		rules_no_memory(err, errsize);
		return (false);
	}
	for (; rest.n != 0; r->nparts++) {
		if (!read_part(&r->part[r->nparts], &rest)) {
			snprintf(err, errsize,
			    "\"%.80s\": expected ${0} to ${19}, ${url.path}, ${qsa} or the like",
			    pair->value.p);
			return (false);
		}
		if (r->part[r->nparts].what == CONDITION)
			ps->uses_condition = true;
	}
	r->match = match_new(pair->key.p, false, why, sizeof(why));
	if (r->match == NULL)
		snprintf(err, errsize, "\"%.80s\" is not a regular expression: %s", pair->key.p,
		    why);
	return (r->match != NULL);
}

struct patterns *
patterns_new(const struct conf_map *map, char *err, size_t errsize)
{
	struct patterns *ps = calloc(1, sizeof(*ps) + map->n * sizeof(ps->rule[0]));

	if (ps == NULL)
		return (rules_no_memory(err, errsize));
	while (ps->n < map->n) {
		ps->n++;
		if (!rule_make(ps, &ps->rule[ps->n - 1], &map->v[ps->n - 1], err, errsize)) {
			patterns_free(ps);
			return (NULL);
		}
	}
	return (ps);
}

void
patterns_free(struct patterns *ps)
{
	size_t i;

	if (ps == NULL)
		return;
	for (i = 0; i < ps->n; i++) {
		match_free(ps->rule[i].match);
		free(ps->rule[i].part);
	}
	free(ps);
}

bool
patterns_use_condition(const struct patterns *ps)
{
	return (ps->uses_condition);
}

/* ---- expanding */

static void
put_escaped(struct buf *out, struct text t, unsigned keep)
{
	size_t begin = out->n;
	char *p = buf_extend(out, 3 * t.n);

	if (p != NULL)
		out->n = begin + urlpath_escape(t, keep, p);
}

/* Letters of the result from begin on; not those of an escape. */
static void
change_case(struct buf *out, size_t begin, unsigned how)
{
	char *p;
	size_t i;

	for (i = begin; !out->failed && i < out->n; i++) {
		p = &out->p[i];
		if (*p == '%')
			i += 2;
		else if (how == LOWER)
			*p = (char)byte_lower(*p);
		else if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p & ~0x20);
	}
}

static void
put_base64(struct buf *out, struct text t, bool decode)
{
	size_t begin = out->n;
	char *p = buf_extend(out, decode ? t.n : BASE64URL_ROOM(t.n));

	if (p != NULL)
		out->n = begin + (decode ? base64url_decode(t, p) : base64url_encode(t, p));
}

static void
put_text(struct buf *out, struct text t, unsigned how)
{
	size_t begin = out->n;

	if ((how & (ENCODE | DECODE)) != 0)
		put_base64(out, t, (how & DECODE) != 0);
	else if ((how & ESCAPE) != 0)
		put_escaped(out, t, how & 0xff);
	else
		buf_text(out, t);
	if ((how & (LOWER | UPPER)) != 0)
		change_case(out, begin, how & (LOWER | UPPER));
}

static void
put_query(struct buf *out, struct text query, unsigned how)
{
	if (query.n == 0)
		return;
	buf_char(out, out->n != 0 && memchr(out->p, '?', out->n) != NULL ? '&' : '?');
	put_text(out, query, how);
}

static void
put_condition(struct buf *out, const struct pattern_part *p, const struct pattern_input *in)
{
	unsigned how = p->how;

	if (in->cond == NULL)
		return;
	/* a "%" of a decoded path must not be decoded again */
	if (in->cond_decoded && (how & (ESCAPE | ENCODE | DECODE)) == 0)
		how |= ESCAPE | URL_OF_DECODED;
	put_text(out, in->cond[p->number], how);
}

static void
put_part(struct buf *out, const struct pattern_part *p, const struct pattern_input *in,
    const struct text cap[MATCH_CAPTURES])
{
	char port[24];

	switch (p->what) {
	case LITERAL: buf_text(out, p->literal); break;
	case CAPTURE: put_text(out, cap[p->number], p->how); break;
	case CONDITION: put_condition(out, p, in); break;
	case SCHEME: put_text(out, in->scheme, p->how); break;
	case AUTHORITY: put_text(out, in->authority, p->how); break;
	case PORT: buf_text(out, (struct text){ port, text_put_u64(port, in->port) }); break;
	case PATH: put_text(out, in->path, p->how); break;
	case QUERY: put_text(out, in->query, p->how); break;
	case QSA: put_query(out, in->query, p->how); break;
	}
}

/* A capture of a decoded path, or what base64 stood for, may have any byte. */
static void
make_printable(struct buf *out)
{
	struct buf raw = *out;

	if (out->failed || urlpath_is_plain(buf_as_text(out), URL_WHOLE))
		return;
	buf_init(out, 0);
	put_escaped(out, buf_as_text(&raw), URL_WHOLE);
	buf_free(&raw);
}

enum pattern_result
patterns_apply(const struct patterns *ps, const struct pattern_input *in, struct buf *out,
    size_t *rule)
{
	struct text cap[MATCH_CAPTURES];
	enum match_result found = MATCH_NO;
	const struct pattern_rule *r;
	size_t i;

	for (*rule = 0; *rule < ps->n && found == MATCH_NO; ++*rule)
		found = match_capture(ps->rule[*rule].match, in->subject, cap);
	if (found == MATCH_FAILED)
		return (PATTERN_UNDECIDED);
	if (found == MATCH_NO)
		return (PATTERN_NONE);
	r = &ps->rule[--*rule];
	if (r->nparts == 0)
		return (PATTERN_NONE);
	out->max = ROOM_MAX;
	for (i = 0; i < r->nparts; i++)
		put_part(out, &r->part[i], in, cap);
	make_printable(out);
	return (out->failed || out->n > PATTERN_MAX ? PATTERN_TOO_LONG : PATTERN_MADE);
}
