/* server/module/setenv.c -- setenv.*: header fields and variables of the configuration.
 *
 *   setenv.add-request-header     a field of the client gets ", value" after its own
 *   setenv.set-request-header     takes the place of the client's; "": removes it.  An application
 *                                 gets both whatever Connection lists (wire/codec/client_fields.h)
 *   setenv.add-response-header    one more line
 *   setenv.set-response-header    takes the place of each such line of the reply; "": removes
 *   setenv.add-environment        a variable of the application, unless it has a value already
 *   setenv.set-environment        a variable of the application
 *
 * The lines for clients are made once for each block.  Names and values come from the
 * configuration only, so a client can put nothing into them.
 */
#include "server/module/module.h"
#include "server/module/rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/must.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/request/request.h"
#include "server/request/route.h"
#include "wire/http1/headers.h"
#include "wire/codec/message.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"

#define LINES_MAX 8192u /* of one setting: the head of a reply is one chunk of io/body.h */

struct setenv_lines {
	struct text lines; /* each with CRLF */
	size_t n;
	struct text names[]; /* the fields that they replace */
};

/* ---- compiling */

enum name_kind { OF_REQUEST, OF_REPLY, OF_VARIABLE };

/* A setting must not decide where a request or a reply ends. */
static bool
is_framing(enum name_kind kind, struct text name)
{
	static const struct text both[] = { TEXT("Connection"), TEXT("Content-Length"),
		TEXT("Keep-Alive"), TEXT("Proxy-Connection"), TEXT("TE"), TEXT("Trailer"),
		TEXT("Transfer-Encoding"), TEXT("Upgrade") };
	static const struct text reply[] = { TEXT("Content-Range"), TEXT("Date") };
	static const struct text request[] = { TEXT("Expect"), TEXT("Host") };

	if (kind == OF_VARIABLE)
		return (text_eq(name, TEXT("CONTENT_LENGTH")));
	return (text_is_one_of(name, both, NELEM(both)) ||
		(kind == OF_REPLY && text_is_one_of(name, reply, NELEM(reply))) ||
		(kind == OF_REQUEST && text_is_one_of(name, request, NELEM(request))));
}

/* NULL, or what is wrong with the name or the value. */
static const char *
pair_fault(enum name_kind kind, const struct conf_pair *p)
{
	if (kind == OF_VARIABLE && !text_is_plain(p->key, '_'))
		return ("a variable has letters, digits and underscores");
	if (kind != OF_VARIABLE && !header_is_token(p->key))
		return ("this is not a name of a header field");
	if (!header_value_ok(p->value))
		return ("the value has control characters");
	if (is_framing(kind, p->key))
		return ("the server makes this field itself, because the length of messages "
			"depends on it; remove it");
	return (NULL);
}

static bool
check(const struct conf_map *map, enum name_kind kind, char *err, size_t errsize)
{
	const char *why = map->n > SETENV_MAX ? "at most 40 rows are possible" : NULL;
	size_t i;

	for (i = 0; why == NULL && i < map->n; i++) {
		why = pair_fault(kind, &map->v[i]);
		if (why != NULL)
			snprintf(err, errsize, "\"%s\": %s", map->v[i].key.p, why);
	}
	if (why != NULL && i == 0)
		snprintf(err, errsize, "%s", why);
	return (why == NULL);
}

static void
lines_free(void *rules)
{
	struct setenv_lines *s = rules;

	free((char *)s->lines.p);
	free(s);
}

static void *
lines_make(const struct conf_map *map, char *err, size_t errsize)
{
	struct setenv_lines *s;
	struct buf b;
	size_t i;

	if (!check(map, OF_REPLY, err, errsize))
		return (NULL);
	s = calloc(1, sizeof(*s) + map->n * sizeof(*s->names));
	if (s == NULL)
		return (rules_no_memory(err, errsize));
	buf_init(&b, LINES_MAX);
	for (i = 0; i < map->n; i++) {
		s->names[s->n++] = map->v[i].key;
		if (map->v[i].value.n != 0)
			buf_printf(&b, "%s: %s\r\n", map->v[i].key.p, map->v[i].value.p);
	}
	s->lines = buf_as_text(&b);
	if (!b.failed)
		return (s);
	lines_free(s);
	snprintf(err, errsize, "expected at most %u bytes in all lines", LINES_MAX);
	return (NULL);
}

/* A request uses the map itself: nothing is compiled. */
static void *
map_make(const struct conf_map *map, enum name_kind kind, char *err, size_t errsize)
{
	struct conf_map *m;

	if (!check(map, kind, err, errsize))
		return (NULL);
	m = malloc(sizeof(*m));
	if (m == NULL)
		return (rules_no_memory(err, errsize));
	*m = *map;
	return (m);
}

#define KIND(field, setting, make_call, free_fn)                           \
	static const void *field##_key(const struct conf *c)               \
	{                                                                  \
		return (c->field.n != 0 ? c->field.v : NULL);              \
	}                                                                  \
	static void *field##_make(const struct conf *c, char *e, size_t n) \
	{                                                                  \
		return (make_call);                                        \
	}                                                                  \
	const struct rules_kind rules_##field = {                          \
		.directive = setting,                                      \
		.key = field##_key,                                        \
		.make = field##_make,                                      \
		.free = free_fn,                                           \
	}

KIND(setenv_add_request, "setenv.add-request-header",
    map_make(&c->setenv_add_request, OF_REQUEST, e, n), free);
KIND(setenv_set_request, "setenv.set-request-header",
    map_make(&c->setenv_set_request, OF_REQUEST, e, n), free);
KIND(setenv_add_response, "setenv.add-response-header", lines_make(&c->setenv_add_response, e, n),
    lines_free);
KIND(setenv_set_response, "setenv.set-response-header", lines_make(&c->setenv_set_response, e, n),
    lines_free);
KIND(setenv_add_environment, "setenv.add-environment",
    map_make(&c->setenv_add_environment, OF_VARIABLE, e, n), free);
KIND(setenv_set_environment, "setenv.set-environment",
    map_make(&c->setenv_set_environment, OF_VARIABLE, e, n), free);

/* ---- the head of a reply */

static size_t
edit_setenv(const struct request *r, char *head, size_t n)
{
	const struct setenv_lines *set = r->site->rules[RULES_setenv_set_response];

	return (set != NULL ? head_without(head, n, set->names, set->n) : n);
}

static void
head_setenv(struct request *r, int status, const struct file_entry *e, struct buf *lines)
{
	const struct setenv_lines *add = r->site->rules[RULES_setenv_add_response],
				  *set = r->site->rules[RULES_setenv_set_response];

	(void)status;
	(void)e;
	if (add != NULL)
		buf_text(lines, add->lines);
	if (set == NULL)
		return;
	lines->n = head_without(lines->p, lines->n, set->names, set->n);
	buf_text(lines, set->lines);
}

/* ---- the request */

/* Removes the lines of a field.  A client's line that makes the same CGI variable is removed, too:
 * it could replace the configuration's.  adds: lines of this very name stay. */
static void
drop_lines(struct http_request *h, struct text name, bool adds)
{
	uint16_t i, n = 0, ours = (uint16_t)(h->nheaders - h->nours);

	for (i = 0; i < h->nheaders; i++) {
		struct http_header line = h->headers[i];
		bool same = text_ieq(line.name, name);

		if (same ? adds : i >= ours || !header_is_alike(line.name, name))
			h->headers[n++] = line;
		else if (i >= ours)
			h->nours--;
	}
	h->nheaders = n;
}

/* The field of this name for the server itself. */
static bool
note_known(struct request *r, struct text name)
{
	struct http_request *h = &r->http;
	unsigned i = 0;

	while (i < HH_N && !text_ieq(name, text_of(http1_name((enum http_known)i))))
		i++;
	if (i == HH_N)
		return (true);
	h->repeated &= ~(1u << i);
	return (route_joined(r, name, i == HH_COOKIE ? "; " : ", ", &h->known[i]));
}

/* False: no memory, or too many fields. */
static bool
put_field(struct request *r, const struct conf_pair *p, bool adds)
{
	struct http_request *h = &r->http;

	drop_lines(h, p->key, adds);
	if (p->value.n != 0) {
		if (h->nheaders == HTTP_MAX_HEADERS)
			return (false);
		h->headers[h->nheaders++] = (struct http_header){ p->key, p->value };
		h->nours++;
	}
	return (note_known(r, p->key));
}

static bool
put_fields(struct request *r, const struct conf_map *map, bool adds)
{
	size_t i;

	for (i = 0; map != NULL && i < map->n; i++)
		if (!put_field(r, &map->v[i], adds))
			return (false);
	return (true);
}

static REQUEST_SLOT(const struct conf_map *, added); /* the add-request-header that was applied */

/* A request that is routed again has the fields already. */
static bool
change_fields(struct request *r)
{
	const struct conf_map *add = r->site->rules[RULES_setenv_add_request],
			      *set = r->site->rules[RULES_setenv_set_request];

	if (add == NULL && set == NULL)
		return (true);
	if (!request_keep(r))
		return (false);
	if (add != NULL && *request_slot(r, added) != add && !put_fields(r, add, true))
		return (false);
	*request_slot(r, added) = add;
	return (put_fields(r, set, false));
}

static bool
change_variables(struct request *r)
{
	const struct conf_map *add = r->site->rules[RULES_setenv_add_environment],
			      *set = r->site->rules[RULES_setenv_set_environment];
	size_t i;

	for (i = 0; add != NULL && i < add->n; i++)
		if (!request_variable(r, add->v[i].key, add->v[i].value, VARIABLE_DEFAULT))
			return (false);
	for (i = 0; set != NULL && i < set->n; i++)
		if (!request_variable(r, set->v[i].key, set->v[i].value, VARIABLE_SET))
			return (false);
	return (true);
}

static const struct handler *
route_setenv(struct request *r)
{
	if (change_fields(r) && change_variables(r))
		return (NULL);
	return (module_refuses(r, 500, TEXT_NONE));
}

static bool
is_used(const struct conf *c)
{
	return (c->setenv_add_request.n != 0 || c->setenv_set_request.n != 0 ||
		c->setenv_add_response.n != 0 || c->setenv_set_response.n != 0 ||
		c->setenv_add_environment.n != 0 || c->setenv_set_environment.n != 0);
}

const struct module module_setenv = {
	.name = "setenv",
	.is_used = is_used,
	.route = route_setenv,
	.head = head_setenv,
	.edit = edit_setenv,
};
