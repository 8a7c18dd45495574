/* server/module/auth_rules.c -- auth.require, and the files of users; see auth.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "io/read_whole.h"
#include "server/config/config.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "wire/http1/headers.h"
#include "server/module/auth.h"

struct reading {
	struct auth_rules *rules;
	struct auth_row *row;
	const char *why; /* NULL: no mistake yet */
};

static const char no_memory[] = "not enough memory";

/* ---- one row */

static bool
wrong(struct reading *k, const char *why)
{
	k->why = why;
	return (false);
}

static struct text
keep(struct reading *k, struct text t)
{
	struct text copy = arena_text(&k->rules->mem, t);

	if (copy.p == NULL)
		wrong(k, no_memory);
	return (copy);
}

static bool
set_method(struct reading *k, struct text value)
{
	static const struct text names[] = { TEXT("basic"), TEXT("digest"), TEXT("extern") };
	unsigned i;

	for (i = 0; i < NELEM(names); i++)
		if (text_eq(value, names[i])) {
			k->row->method = (enum auth_method)i;
			return (true);
		}
	return (wrong(k, "\"method\" is \"basic\", \"digest\" or \"extern\""));
}

static bool
set_realm(struct reading *k, struct text value)
{
	char quoted[2 * USER_MAX], *to = quoted;
	size_t i;

	if (value.n == 0 || value.n > USER_MAX || text_has_control(value))
		return (wrong(k, "\"realm\" has 1 to 256 bytes without control characters"));
	for (i = 0; i < value.n; i++) {
		if (value.p[i] == '"' || value.p[i] == '\\')
			*to++ = '\\';
		*to++ = value.p[i];
	}
	k->row->realm = keep(k, value);
	k->row->realm_quoted = keep(k, (struct text){ quoted, (size_t)(to - quoted) });
	return (true);
}

static bool
set_algorithm(struct reading *k, struct text value)
{
	struct text name;

	k->row->algorithms = 0;
	while (text_next(&value, '|', &name)) {
		name = text_trim(name);
		if (text_ieq(name, TEXT("MD5")))
			k->row->algorithms |= AUTH_MD5;
		else if (text_ieq(name, TEXT("SHA-256")))
			k->row->algorithms |= AUTH_SHA256;
		else
			return (wrong(k, "\"algorithm\" is \"MD5\", \"SHA-256\" or "
					 "\"MD5|SHA-256\""));
	}
	return (true);
}

static bool
add_name(struct reading *k, struct auth_names *to, struct text name)
{
	struct text *more = arena_get(&k->rules->mem, (to->n + 1) * sizeof(*more));

	if (more == NULL)
		return (wrong(k, no_memory));
	if (to->n != 0)
		memcpy(more, to->v, to->n * sizeof(*more));
	more[to->n++] = keep(k, name);
	to->v = more;
	return (name.n != 0 || wrong(k, "\"require\": a name is empty"));
}

/* "user=", "group=" or "host=" */
static struct auth_names *
names_of(struct auth_row *row, struct text kind)
{
	if (text_eq(kind, TEXT("user")))
		return (&row->users);
	if (text_eq(kind, TEXT("group")))
		return (&row->groups);
	return (text_eq(kind, TEXT("host")) ? &row->hosts : NULL);
}

static bool
set_require(struct reading *k, struct text value)
{
	struct auth_names *to;
	struct text one, kind;

	while (text_next(&value, '|', &one)) {
		one = text_trim(one);
		if (text_eq(one, TEXT("valid-user"))) {
			k->row->any_user = true;
			continue;
		}
		to = text_next(&one, '=', &kind) && one.p != NULL ? names_of(k->row, kind) : NULL;
		if (to == NULL)
			return (
			    wrong(k, "\"require\" is \"valid-user\", or \"user=NAME\", "
				     "\"group=NAME\" and \"host=ADDRESS\" with | between them"));
		if (!add_name(k, to, one))
			return (false);
	}
	return (true);
}

static bool
set_secret(struct reading *k, struct text value)
{
	if (value.n < 16)
		return (wrong(k, "\"nonce_secret\" has at least 16 bytes"));
	k->row->secret = keep(k, value);
	return (true);
}

static bool
set_one(struct reading *k, const struct conf_pair *p)
{
	if (text_eq(p->key, TEXT("method")))
		return (set_method(k, p->value));
	if (text_eq(p->key, TEXT("realm")))
		return (set_realm(k, p->value));
	if (text_eq(p->key, TEXT("require")))
		return (set_require(k, p->value));
	if (text_eq(p->key, TEXT("algorithm")))
		return (set_algorithm(k, p->value));
	if (text_eq(p->key, TEXT("nonce_secret")) || text_eq(p->key, TEXT("nonce-secret")))
		return (set_secret(k, p->value));
	return (wrong(k, "the keys are \"method\", \"realm\", \"require\", \"algorithm\" and "
			 "\"nonce_secret\""));
}

static bool
has_key(const struct conf_map *map, const char *key)
{
	size_t i = 0;

	while (i < map->n && !text_eq(map->v[i].key, text_of(key)))
		i++;
	return (i < map->n);
}

static bool
row_read(struct reading *k, const struct conf_pair *p)
{
	size_t i;

	k->row->prefix = keep(k, p->key);
	k->row->algorithms = AUTH_MD5;
	if (!has_key(p->map, "method") || !has_key(p->map, "require"))
		return (wrong(k, "\"method\" and \"require\" are needed"));
	for (i = 0; i < p->map->n; i++)
		if (!set_one(k, &p->map->v[i]))
			return (false);
	if (k->row->method != AUTH_EXTERN && k->row->realm.n == 0)
		return (wrong(k, "\"realm\" is needed"));
	return (true);
}

/* ---- auth.require */

/* What a client is compared with. */
static const char *
users_of(const struct conf *c)
{
	if (c->auth_backend == NULL)
		return (NULL);
	if (strcmp(c->auth_backend, "plain") == 0)
		return (c->auth_plain_users);
	return (strcmp(c->auth_backend, "htpasswd") == 0 ? c->auth_htpasswd : c->auth_htdigest);
}

static bool
is_extern(const struct conf_pair *row)
{
	size_t i;

	for (i = 0; row->map != NULL && i < row->map->n; i++)
		if (text_eq(row->map->v[i].key, TEXT("method")))
			return (text_eq(row->map->v[i].value, TEXT("extern")));
	return (false);
}

/* The rule may be around the blocks that have the users.  In other places the answer is 500 to
 * everybody. */
static const char *
require_lacks(const struct conf *c)
{
	size_t i = 0;

	while (i < c->auth_require.n && is_extern(&c->auth_require.v[i]))
		i++;
	if (i == c->auth_require.n)
		return (NULL);
	if (c->auth_backend == NULL)
		return ("auth.backend is not set here; write auth.backend = \"htpasswd\"");
	if (users_of(c) == NULL)
		return ("the file of users is not set here; write auth.backend.plain.userfile, "
			"auth.backend.htpasswd.userfile or auth.backend.htdigest.userfile");
	return (NULL);
}

static void
rules_free(struct auth_rules *r)
{
	arena_reset(&r->mem);
	free(r);
}

void
auth_rules_put(struct auth_rules *r)
{
	if (__atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) == 0)
		rules_free(r);
}

struct auth_rules *
auth_rules_ref(const struct auth_rules *rules)
{
	struct auth_rules *r = (struct auth_rules *)(uintptr_t)rules;

	__atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
	return (r);
}

static void *
require_make(const struct conf *c, char *err, size_t errsize)
{
	const struct conf_map *map = &c->auth_require;
	struct auth_rules *r = calloc(1, sizeof(*r));
	struct reading k = { .rules = r };
	size_t i;

	if (r == NULL)
		return (rules_no_memory(err, errsize));
	r->refs = 1;
	arena_init(&r->mem, NULL, 0, 0);
	r->rows = arena_get(&r->mem, map->n * sizeof(*r->rows));
	if (r->rows == NULL) {
		rules_free(r);
		return (rules_no_memory(err, errsize));
	}
	memset(r->rows, 0, map->n * sizeof(*r->rows));
	for (i = 0; i < map->n; i++) {
		k.row = &r->rows[i];
		(void)row_read(&k, &map->v[i]);
		if (k.why != NULL) {
			snprintf(err, errsize, "\"%s\": %s", map->v[i].key.p, k.why);
			rules_free(r);
			return (NULL);
		}
	}
	r->n = map->n;
	return (r);
}

static const void *
require_key(const struct conf *c)
{
	return (c->auth_require.n != 0 ? c->auth_require.v : NULL);
}

static void
require_free(void *rules)
{
	auth_rules_put(rules);
}

const struct rules_kind rules_auth_require = {
	.directive = "auth.require",
	.key = require_key,
	.make = require_make,
	.free = require_free,
	.lacks = require_lacks,
};

/* ---- files of users */

struct auth_file *
auth_file_ref(const struct auth_file *file)
{
	struct auth_file *f = (struct auth_file *)(uintptr_t)file;

	if (f != NULL)
		__atomic_add_fetch(&f->refs, 1, __ATOMIC_RELAXED);
	return (f);
}

void
auth_file_put(struct auth_file *f)
{
	if (f == NULL || __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	root_close(&f->dir);
	free(f->path);
	free(f);
}

struct text
auth_file_read(const struct auth_file *f, int *err)
{
	return (io_read_whole(f->dir.fd, f->name, AUTH_FILE_MAX, err));
}

/* NULL: *err has -errno. */
static struct auth_file *
file_open(const char *path, int *err)
{
	struct auth_file *f = calloc(1, sizeof(*f));
	char *slash;

	if (f != NULL)
		f->path = strdup(path);
	if (f == NULL || f->path == NULL) {
		free(f);
		*err = -ENOMEM;
		return (NULL);
	}
	f->refs = 1;
	slash = strrchr(f->path, '/');
	f->name = slash != NULL ? slash + 1 : f->path;
	if (slash != NULL)
		*slash = '\0';
	*err = root_open(slash == NULL ? "." : slash == f->path ? "/" : f->path, &f->dir);
	if (slash != NULL)
		*slash = '/';
	if (*err == 0)
		return (f);
	free(f->path);
	free(f);
	return (NULL);
}

/* Reads the file once: a file that cannot be read stops the start. */
static void *
file_make(const char *path, char *err, size_t errsize)
{
	int error = 0;
	struct auth_file *f = file_open(path, &error);
	struct text bytes;

	if (f != NULL) {
		bytes = auth_file_read(f, &error);
		if (bytes.p != NULL) {
			free((char *)bytes.p);
			return (f);
		}
		auth_file_put(f);
	}
	snprintf(err, errsize, "\"%s\" cannot be read by the server's user: %s", path,
	    error == -EFBIG ? "it has more than 4 MiB" : strerror(-error));
	return (NULL);
}

static void
file_free(void *file)
{
	auth_file_put(file);
}

#define FILE_KIND(field, setting)                                          \
	static const void *field##_key(const struct conf *c)               \
	{                                                                  \
		return (c->field);                                         \
	}                                                                  \
	static void *field##_make(const struct conf *c, char *e, size_t n) \
	{                                                                  \
		return (file_make(c->field, e, n));                        \
	}                                                                  \
	const struct rules_kind rules_##field = {                          \
		.directive = setting,                                      \
		.key = field##_key,                                        \
		.make = field##_make,                                      \
		.free = file_free,                                         \
	}

FILE_KIND(auth_plain_users, "auth.backend.plain.userfile");
FILE_KIND(auth_groups, "auth.backend.plain.groupfile");
FILE_KIND(auth_htpasswd, "auth.backend.htpasswd.userfile");
FILE_KIND(auth_htdigest, "auth.backend.htdigest.userfile");
