/* server/module/auth_check.c -- in a thread: does the password fit the user, and is the user
 * allowed?
 *
 *   file of users --> secret of the user, or that of another one --> compare --> user, group, host
 *
 * A user who does not exist costs the same work, so the time of an answer names no users.
 */
#include <stdlib.h>

#include "server/module/auth.h"

/* For a file without users: a hash of bcrypt. */
#define NOBODY "$2y$05$m1j3TIYxC6AAzzGrfBTnreFJYu8drrGGkOFwB2ng.91qdR9p/ugAS"

/* Names are compared in full, each time. */
static bool
has_name(const struct auth_names *names, struct text name)
{
	bool has = false;
	size_t i;

	for (i = 0; i < names->n; i++)
		has |= text_eq(names->v[i], name);
	return (has);
}

/* ---- the password */

/* The hash of user, realm and password: what the file htdigest has. */
static struct text
a1_of(const struct auth_check *k, struct text password, char hex[HEX_MAX])
{
	const struct text parts[] = { k->said.user, k->row->realm, password, TEXT_NONE };

	return ((struct text){ hex, auth_hash(k->algorithm, parts, hex) });
}

static bool
digest_fits(const struct auth_check *k, struct text secret)
{
	char hex[HEX_MAX];

	if (k->format == USERS_PLAIN)
		secret = a1_of(k, secret, hex);
	return (auth_digest_fits(k, secret));
}

static bool
is_same_hash(struct text ours, struct text theirs)
{
	char hex[HEX_MAX];
	size_t i;

	if (theirs.n >= sizeof(hex))
		return (false);
	for (i = 0; i < theirs.n; i++)
		hex[i] = (char)byte_lower(theirs.p[i]);
	return (text_eq_secret(ours, (struct text){ hex, theirs.n }));
}

static bool
basic_fits(const struct auth_check *k, struct text secret)
{
	char hex[HEX_MAX];

	if (k->format == USERS_HTPASSWD)
		return (auth_password_fits(secret, k->said.password.p));
	if (k->format == USERS_HTDIGEST)
		return (is_same_hash(a1_of(k, k->said.password, hex), secret));
	return (text_eq_secret(secret, k->said.password));
}

static bool
fits(struct auth_check *k, struct text bytes)
{
	const struct user_query q = { k->format, k->said.user, k->row->realm,
		k->algorithm == AUTH_SHA256 ? 64 : 32 };
	struct text secret = user_file_find(bytes, &q);
	bool known = secret.p != NULL, ok;

	if (!known)
		secret = user_file_any(bytes, &q);
	if (secret.p == NULL)
		secret = TEXT(NOBODY);
	ok = k->digest ? digest_fits(k, secret) : basic_fits(k, secret);
	k->why = !known ? "no such user" : "the password does not fit";
	return (known && ok);
}

/* ---- the rule */

static struct text
read_file(struct auth_check *k, const struct auth_file *f)
{
	struct text bytes = auth_file_read(f, &k->err);

	if (bytes.p == NULL) {
		k->result = AUTH_BROKEN;
		k->why = f->path;
	}
	return (bytes);
}

static bool
is_in_group(struct auth_check *k)
{
	struct text bytes;
	bool has = false;
	size_t i;

	if (k->row->groups.n == 0 || k->groups == NULL)
		return (false);
	bytes = read_file(k, k->groups);
	for (i = 0; bytes.p != NULL && i < k->row->groups.n; i++)
		has = has || group_file_has(bytes, k->row->groups.v[i], k->said.user);
	free((char *)bytes.p);
	return (has);
}

static bool
may(struct auth_check *k)
{
	const struct auth_row *row = k->row;

	if (row->any_user || has_name(&row->users, k->said.user) ||
	    has_name(&row->hosts, text_of(k->remote)) || is_in_group(k))
		return (true);
	if (k->result == AUTH_BROKEN)
		return (false);
	k->why = row->groups.n != 0 && k->groups == NULL
		     ? "\"group=\" has nobody without auth.backend.plain.groupfile"
		     : "the user is not one of \"require\"";
	return (false);
}

static void
run(struct io_work *w)
{
	struct auth_check *k = container_of(w, struct auth_check, work);
	struct text bytes = read_file(k, k->users);

	if (bytes.p == NULL)
		return;
	if (fits(k, bytes) && may(k))
		k->result = AUTH_GRANTED;
	explicit_bzero((char *)bytes.p, bytes.n);
	free((char *)bytes.p);
}

static void
check_free(struct io_work *w)
{
	struct auth_check *k = container_of(w, struct auth_check, work);

	if (k->rules != NULL)
		auth_rules_put(k->rules);
	auth_file_put(k->users);
	auth_file_put(k->groups);
	free(k->remote);
	free(k->method);
	explicit_bzero(k, sizeof(*k));
	free(k);
}

struct auth_check *
auth_check_new(void)
{
	struct auth_check *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return (NULL);
	k->work = (struct io_work){ .run = run, .free = check_free, .refs = 1 };
	k->result = AUTH_REFUSED;
	return (k);
}
