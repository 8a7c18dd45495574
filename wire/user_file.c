/* wire/user_file.c -- see user_file.h */
#include "wire/user_file.h"

/* The next line that counts.  False: no more. */
static bool
next_line(struct text *rest, struct text *line)
{
	while (text_next(rest, '\n', line)) {
		if (line->n != 0 && line->p[line->n - 1] == '\r')
			line->n--;
		if (line->n != 0 && line->p[0] != '#' && memchr(line->p, '\0', line->n) == NULL)
			return (true);
	}
	return (false);
}

/* Splits off the field before the next colon.  False: there is no colon. */
static bool
field(struct text *line, struct text *name)
{
	return (text_next(line, ':', name) && line->p != NULL);
}

static bool
is_hash(struct text t, size_t digits)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (text_hex_digit(t.p[i]) < 0)
			return (false);
	return (t.n == digits);
}

/* any: accepts the line of any user.  .p NULL: not this line. */
static struct text
secret_of(struct text line, const struct user_query *q, bool any)
{
	struct text user, realm, secret;

	if (!field(&line, &user) || (!any && !text_eq(user, q->user)))
		return (TEXT_NONE);
	if (q->format == USERS_PLAIN)
		return (line);
	if (q->format == USERS_HTPASSWD)
		return (text_next(&line, ':', &secret) ? secret : TEXT_NONE);
	if (!field(&line, &realm) || (!any && !text_eq(realm, q->realm)) ||
	    !is_hash(line, q->digits))
		return (TEXT_NONE);
	return (line);
}

static struct text
find(struct text bytes, const struct user_query *q, bool any)
{
	struct text line, secret;

	while (next_line(&bytes, &line)) {
		secret = secret_of(line, q, any);
		if (secret.p != NULL)
			return (secret);
	}
	return (TEXT_NONE);
}

struct text
user_file_find(struct text bytes, const struct user_query *q)
{
	return (find(bytes, q, false));
}

struct text
user_file_any(struct text bytes, const struct user_query *q)
{
	return (find(bytes, q, true));
}

/* Members are separated by blanks and commas. */
static bool
has_member(struct text members, struct text user)
{
	struct text part, name;

	while (text_next(&members, ',', &part))
		while (text_next(&part, ' ', &name))
			if (text_eq(text_trim(name), user))
				return (true);
	return (false);
}

bool
group_file_has(struct text bytes, struct text group, struct text user)
{
	struct text line, name;

	if (user.n == 0)
		return (false);
	while (next_line(&bytes, &line))
		if (field(&line, &name) && text_eq(text_trim(name), group) &&
		    has_member(line, user))
			return (true);
	return (false);
}
