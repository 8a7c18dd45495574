/* server/module/evhost.c -- evhost.path-pattern: a directory made of the parts of a host.
 *
 *   /srv/hosts/%0/%3/htdocs           www.example.org
 *   `--------'                        %_ all of it    %0 example.org
 *    the root, opened at load         %1 org   %2 example   %3 www   %4 ... none: empty
 *                                     %{3.1} w  %% a percent sign
 */
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "files/root.h"
#include "io/io.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/module/vhost.h"
#include "server/request/request.h"

#define LABELS_MAX 9u /* %1 to %9 */
#define PIECES_MAX 64u

struct piece {
	enum { PIECE_TEXT, PIECE_HOST, PIECE_PART } kind;
	struct text text;
	unsigned part; /* 0 to 9 */
	unsigned at;   /* one character of it, from 1 on; 0: all */
};

struct evhost {
	struct root root;
	size_t n;
	struct piece v[PIECES_MAX];
};

/* ---- the pattern */

/* "{M.N}" after a percent sign; returns its length, or 0. */
static size_t
character(struct text t, struct piece *p)
{
	if (t.n < 5 || t.p[0] != '{' || !byte_is_digit(t.p[1]) || t.p[2] != '.' ||
	    !byte_is_digit(t.p[3]) || t.p[4] != '}')
		return (0);
	p->kind = PIECE_PART;
	p->part = (unsigned)(t.p[1] - '0');
	p->at = (unsigned)(t.p[3] - '0');
	return (5);
}

/* Reads the placeholder after a percent sign; returns its length, or 0. */
static size_t
placeholder(struct text t, struct piece *p)
{
	if (t.n == 0)
		return (0);
	*p = (struct piece){ .kind = PIECE_PART };
	if (byte_is_digit(t.p[0]))
		p->part = (unsigned)(t.p[0] - '0');
	else if (t.p[0] == '_')
		p->kind = PIECE_HOST;
	else if (t.p[0] == '%')
		*p = (struct piece){ PIECE_TEXT, TEXT("%"), 0, 0 };
	else
		return (character(t, p));
	return (1);
}

/* NULL, or what is wrong with the pattern. */
static const char *
pieces_read(struct evhost *e, struct text t)
{
	const char *end;
	size_t n;

	while (t.n != 0) {
		if (e->n == PIECES_MAX)
			return ("expected at most 64 pieces");
		end = memchr(t.p, '%', t.n);
		n = end != NULL ? (size_t)(end - t.p) : t.n;
		if (n != 0) {
			e->v[e->n++] = (struct piece){ PIECE_TEXT, text_take(&t, n), 0, 0 };
			continue;
		}
		text_take(&t, 1);
		n = placeholder(t, &e->v[e->n++]);
		if (n == 0)
			return ("expected %0 to %9, %_, %% or %{M.N} after a percent sign");
		text_take(&t, n);
	}
	return (NULL);
}

char *
evhost_root(const char *pattern, size_t *n)
{
	const char *sign = strchr(pattern, '%'), *slash;

	if (pattern[0] != '/')
		return (NULL);
	if (sign == NULL) {
		*n = strlen(pattern);
		return (g_strdup(pattern));
	}
	for (slash = sign; slash > pattern && slash[-1] != '/'; slash--)
		continue;
	*n = (size_t)(slash - pattern);
	return (*n > 1 ? g_strndup(pattern, *n) : NULL);
}

static const char *
open_root(struct evhost *e, const char *pattern, size_t *n)
{
	char *dir = evhost_root(pattern, n);
	int err;

	if (dir == NULL)
		return ("expected an absolute path with a directory in front of the first percent "
			"sign, as \"/srv/%_/htdocs\"");
	err = root_open(dir, &e->root);
	g_free(dir);
	return (err == 0 ? NULL : io_root_error(err));
}

static void
evhost_free(void *made)
{
	struct evhost *e = made;

	if (e->root.name.p != NULL)
		root_close(&e->root);
	free(e);
}

static void *
evhost_make(const struct conf *c, char *err, size_t errsize)
{
	struct evhost *e = calloc(1, sizeof(*e));
	const char *why;
	size_t n = 0;

	if (e == NULL)
		return (rules_no_memory(err, errsize));
	why = open_root(e, c->evhost_pattern, &n);
	if (why == NULL)
		why = pieces_read(e, text_of(c->evhost_pattern + n));
	if (why == NULL)
		return (e);
	snprintf(err, errsize, "\"%s\": %s", c->evhost_pattern, why);
	evhost_free(e);
	return (NULL);
}

static const void *
evhost_key(const struct conf *c)
{
	return (c->evhost_pattern);
}

const struct rules_kind rules_evhost = {
	.directive = "evhost.path-pattern",
	.key = evhost_key,
	.make = evhost_make,
	.free = evhost_free,
};

/* ---- requests */

/* An address in brackets is one part, %0.  part[0]: the last two labels; part[1]: the last. */
static void
split(struct text host, struct text part[LABELS_MAX + 1])
{
	size_t end = host.n, at = host.n;
	unsigned i;

	for (i = 0; i <= LABELS_MAX; i++)
		part[i] = TEXT("");
	part[0] = host;
	if (host.p[0] == '[')
		return;
	for (i = 1; i <= LABELS_MAX && end != 0; i++) {
		for (at = end; at > 0 && host.p[at - 1] != '.'; at--)
			continue;
		part[i] = (struct text){ host.p + at, end - at };
		if (i == 2)
			part[0] = (struct text){ host.p + at, host.n - at };
		end = at != 0 ? at - 1 : 0;
	}
}

static struct text
value_of(const struct piece *p, struct text host, const struct text *part)
{
	struct text t = p->kind == PIECE_TEXT   ? p->text
			: p->kind == PIECE_HOST ? host
						: part[p->part];

	if (p->at == 0)
		return (t);
	return (p->at <= t.n ? (struct text){ t.p + p->at - 1, 1 } : TEXT(""));
}

static struct vhost_dir
dir_of(struct request *r, const struct evhost *e)
{
	struct text part[LABELS_MAX + 1], host = vhost_host(r), name = TEXT_NONE;
	struct vhost_dir d = { .root = &e->root };
	struct buf b;
	size_t i;

	if (host.p == NULL)
		return (d);
	split(host, part);
	buf_init(&b, PATH_MAX);
	for (i = 0; i < e->n; i++)
		buf_text(&b, value_of(&e->v[i], host, part));
	if (!b.failed)
		name = buf_as_text(&b);
	if (name.n != 0 || e->n == 0)
		d.name = vhost_join(r, &name, 1);
	buf_free(&b);
	while (d.name.n != 0 && d.name.p[0] == '/')
		text_take(&d.name, 1);
	d.base = d.name.n;
	return (d);
}

static bool
is_used(const struct conf *c)
{
	return (c->evhost_pattern != NULL);
}

static const struct handler *
route_evhost(struct request *r)
{
	const struct vhost_dir d = dir_of(r, r->site->rules[RULES_evhost]);

	return (vhost_route(r, vhost_find(r, &d)));
}

static int
place_evhost(struct request *r)
{
	const struct vhost_dir d = dir_of(r, r->site->rules[RULES_evhost]);

	return (vhost_find(r, &d) == VHOST_YES ? vhost_place(r, &d, request_path(r)) : 0);
}

const struct module module_evhost = {
	.name = "evhost",
	.is_used = is_used,
	.route = route_evhost,
	.place = place_evhost,
};
