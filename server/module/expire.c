/* server/module/expire.c -- expire.url and expire.mimetypes: how long a client may keep a reply.
 *
 *   "access plus 1 hours"                Cache-Control: max-age=3600     Expires: ... in HTTP/1.0
 *   "modification plus 1 months 2 days"  counted from the date of the file
 *
 * A reply of an application that says itself how long it is fresh stays as it is.  A 304 says what
 * the 200 would say (RFC 9110, 15.4.5), because it makes a stored reply fresh again.
 */
#include "server/module/module.h"
#include "server/module/rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "files/hold/hold.h"
#include "server/config/check/mime.h"
#include "server/config/site.h"
#include "server/request/request.h"
#include "wire/http1/http_date.h"
#include "server/reply/reply.h"
#include "server/worker/base.h"

#define EXPIRE_MAX_S (100ull * 365 * 86400) /* more is a mistake */

struct expire_row {
	struct text prefix; /* of the path, or of the media type */
	uint64_t seconds;
	bool since_change; /* counts from the modification of the file */
};

struct expire {
	size_t n;
	struct expire_row rows[];
};

/* ---- compiling */

/* Splits off the next word; .n 0: none. */
static struct text
word(struct text *rest)
{
	struct text w = TEXT_NONE;

	while (rest->n != 0 && w.n == 0)
		(void)text_next(rest, ' ', &w);
	return (w);
}

static uint64_t
unit(struct text name)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = { { "second", 1 }, { "minute", 60 }, { "hour", 3600 }, { "day", 86400 },
		{ "week", 7 * 86400 }, { "month", 30 * 86400 }, { "year", 365 * 86400 } };
	size_t i;

	if (name.n != 0 && name.p[name.n - 1] == 's')
		name.n--;
	for (i = 0; i < NELEM(units); i++)
		if (text_eq(name, text_of(units[i].name)))
			return (units[i].seconds);
	return (0);
}

/* NULL, or what is wrong with the value. */
static const char *
row_read(struct text value, struct expire_row *row)
{
	struct text rest = value, w = word(&rest);
	uint64_t number, each;

	row->since_change = text_eq(w, TEXT("modification"));
	if (!row->since_change && !text_eq(w, TEXT("access")) && !text_eq(w, TEXT("now")))
		return ("begin with \"access\" or \"modification\"");
	w = word(&rest);
	if (text_eq(w, TEXT("plus")))
		w = word(&rest);
	if (w.n == 0)
		return ("add a time such as \"plus 1 hours\"");
	for (row->seconds = 0; w.n != 0; w = word(&rest)) {
		if (text_u64(w, &number) != 0)
			return ("write a number before each unit");
		each = unit(word(&rest));
		if (each == 0)
			return ("the units are years, months, weeks, days, hours, minutes and "
				"seconds");
		if (number > EXPIRE_MAX_S / each)
			return ("at most 100 years are possible");
		row->seconds += number * each;
	}
	return (row->seconds <= EXPIRE_MAX_S ? NULL : "at most 100 years are possible");
}

/* "text/" and "text/" followed by an asterisk are the same. */
static struct text
without_star(struct text prefix)
{
	if (prefix.n != 0 && prefix.p[prefix.n - 1] == '*')
		prefix.n--;
	return (prefix);
}

static void *
make(const struct conf_map *map, char *err, size_t errsize)
{
	struct expire *x = calloc(1, sizeof(*x) + map->n * sizeof(*x->rows));
	const char *why;
	size_t i;

	if (x == NULL)
		return (rules_no_memory(err, errsize));
	for (i = 0; i < map->n; i++) {
		x->rows[i].prefix = without_star(map->v[i].key);
		why = row_read(map->v[i].value, &x->rows[i]);
		if (why != NULL) {
			snprintf(err, errsize, "\"%s\" => \"%s\": %s", map->v[i].key.p,
			    map->v[i].value.p, why);
			free(x);
			return (NULL);
		}
	}
	x->n = map->n;
	return (x);
}

static const void *
url_key(const struct conf *c)
{
	return (c->expire_url.n != 0 ? c->expire_url.v : NULL);
}

static void *
url_make(const struct conf *c, char *err, size_t errsize)
{
	return (make(&c->expire_url, err, errsize));
}

static const void *
mimetypes_key(const struct conf *c)
{
	return (c->expire_mimetypes.n != 0 ? c->expire_mimetypes.v : NULL);
}

static void *
mimetypes_make(const struct conf *c, char *err, size_t errsize)
{
	return (make(&c->expire_mimetypes, err, errsize));
}

const struct rules_kind rules_expire_url = {
	.directive = "expire.url",
	.key = url_key,
	.make = url_make,
	.free = free,
};
const struct rules_kind rules_expire_mimetypes = {
	.directive = "expire.mimetypes",
	.key = mimetypes_key,
	.make = mimetypes_make,
	.free = free,
};

/* ---- a reply */

static const struct expire_row *
find(const struct expire *x, struct text t)
{
	size_t i;

	for (i = 0; x != NULL && i < x->n; i++)
		if (text_starts(t, x->rows[i].prefix))
			return (&x->rows[i]);
	return (NULL);
}

/* A type does not depend on the case of its letters. */
static const struct expire_row *
find_type(const struct expire *x, struct text type)
{
	size_t i;

	for (i = 0; x != NULL && i < x->n; i++)
		if (text_istarts(type, x->rows[i].prefix))
			return (&x->rows[i]);
	return (NULL);
}

static struct text
type_of(struct request *r, const struct file_entry *e)
{
	struct text type = reply_given(r, TEXT("Content-Type"));

	if (type.p != NULL || e == NULL)
		return (type);
	return (mime_type(r->site->style.mime, e->lk.path));
}

static const struct expire_row *
row_of(struct request *r, const struct file_entry *e)
{
	const struct expire_row *row = find(r->site->rules[RULES_expire_url], request_path(r));

	if (row != NULL || r->site->rules[RULES_expire_mimetypes] == NULL)
		return (row);
	return (find_type(r->site->rules[RULES_expire_mimetypes], type_of(r, e)));
}

static void
head_expire(struct request *r, int status, const struct file_entry *e, struct buf *lines)
{
	const struct expire_row *row;
	uint64_t now = io_wall_s(r->worker->io), end;
	char date[HTTP_DATE_LEN + 1];
	int64_t changed;

	if ((status != 200 && status != 206 && status != 304) ||
	    reply_given(r, TEXT("Cache-Control")).p != NULL ||
	    reply_given(r, TEXT("Expires")).p != NULL)
		return;
	row = row_of(r, e);
	if (row == NULL || (row->since_change && e == NULL))
		return;
	changed = row->since_change ? e->stx.stx_mtime.tv_sec : (int64_t)now;
	end = (changed > 0 ? (uint64_t)changed : 0) + row->seconds;
	end = end < HTTP_DATE_MAX ? end : HTTP_DATE_MAX;
	if (r->http.minor == 0) {
		http_date_put(date, end > now ? end : now);
		buf_printf(lines, "Expires: %s\r\n", date);
		return;
	}
	buf_str(lines, "Cache-Control: max-age=");
	buf_u64(lines, end > now ? end - now : 0);
	buf_str(lines, "\r\n");
}

static bool
is_used(const struct conf *c)
{
	return (c->expire_url.n != 0 || c->expire_mimetypes.n != 0);
}

const struct module module_expire = {
	.name = "expire",
	.is_used = is_used,
	.head = head_expire,
};
