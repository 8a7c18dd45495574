/* wire/authorization.c -- see authorization.h */
#include "wire/authorization.h"

#include "base/must.h"

/* ---- Basic */

static int
base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (c - 'A');
	if (c >= 'a' && c <= 'z')
		return (c - 'a' + 26);
	if (byte_is_digit(c))
		return (c - '0' + 52);
	return (c == '+' ? 62 : c == '/' ? 63 : -1);
}

int
base64_decode(struct text t, char *dst)
{
	size_t pad = 0, i, n = 0;
	uint32_t bits = 0;
	int d;

	if (t.n == 0 || t.n % 4 != 0)
		return (-1);
	while (pad < 2 && t.p[t.n - 1 - pad] == '=')
		pad++;
	for (i = 0; i < t.n - pad; i++) {
		d = base64_digit(t.p[i]);
		if (d < 0)
			return (-1);
		bits = bits << 6 | (uint32_t)d;
		if (i % 4 == 0)
			continue;
		dst[n++] = (char)(bits >> (6 - 2 * (i % 4)));
	}
	if (pad != 0 && (bits & (pad == 2 ? 0xfu : 0x3u)) != 0)
		return (-1);
	return ((int)n);
}

static bool
is_user(struct text t)
{
	return (t.n <= USER_MAX && !text_has_control(t));
}

static enum authorization_kind
read_basic(struct text value, struct authorization *a)
{
	int n = base64_decode(value, a->store);
	char *colon;

	if (n < 0)
		return (AUTHORIZATION_BAD);
	a->store[n] = '\0';
	colon = memchr(a->store, ':', (size_t)n);
	if (colon == NULL)
		return (AUTHORIZATION_BAD);
	a->user = (struct text){ a->store, (size_t)(colon - a->store) };
	a->password = (struct text){ colon + 1, (size_t)(a->store + n - colon - 1) };
	*colon = '\0';
	if (a->user.n == 0 || !is_user(a->user) || a->password.n > PASSWORD_MAX ||
	    text_has_control(a->password))
		return (AUTHORIZATION_BAD);
	return (AUTHORIZATION_BASIC);
}

/* ---- Digest */

static bool
is_token_byte(char c)
{
	return (byte_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL));
}

static void
skip_blanks(struct text *t)
{
	while (t->n != 0 && (t->p[0] == ' ' || t->p[0] == '\t'))
		text_take(t, 1);
}

static struct text
token(struct text *rest)
{
	size_t n = 0;

	while (n < rest->n && is_token_byte(rest->p[n]))
		n++;
	return (text_take(rest, n));
}

/* rest begins after the first quote.  .p NULL: no end, or a byte that is not allowed. */
static struct text
quoted(struct text *rest, struct authorization *a)
{
	char *start = a->store + a->used, *to = start;

	while (rest->n != 0 && rest->p[0] != '"') {
		if (rest->p[0] == '\\')
			text_take(rest, 1);
		if (rest->n == 0 || text_has_control((struct text){ rest->p, 1 }))
			return (TEXT_NONE);
		*to++ = text_take(rest, 1).p[0];
	}
	if (rest->n == 0)
		return (TEXT_NONE);
	text_take(rest, 1);
	*to = '\0';
	a->used = (size_t)(to + 1 - a->store);
	return ((struct text){ start, (size_t)(to - start) });
}

/* A value never takes more bytes of the store than its name and value take in the header. */
static struct text
value_of(struct text *rest, struct authorization *a)
{
	char *start = a->store + a->used;
	struct text t;

	if (rest->n != 0 && rest->p[0] == '"') {
		text_take(rest, 1);
		return (quoted(rest, a));
	}
	t = token(rest);
	if (t.n == 0)
		return (TEXT_NONE);
	memcpy(start, t.p, t.n);
	start[t.n] = '\0';
	a->used += t.n + 1;
	return ((struct text){ start, t.n });
}

/* Where the value of the parameter goes.  NULL: the parameter does not matter. */
static struct text *
place_of(struct authorization *a, struct text name)
{
	const struct {
		const char *name;
		struct text *place;
	} all[] = { { "username", &a->user }, { "realm", &a->realm }, { "nonce", &a->nonce },
		{ "uri", &a->uri }, { "response", &a->response }, { "algorithm", &a->algorithm },
		{ "cnonce", &a->cnonce }, { "opaque", &a->opaque }, { "qop", &a->qop },
		{ "nc", &a->nc } };
	size_t i;

	for (i = 0; i < NELEM(all); i++)
		if (text_ieq(name, text_of(all[i].name)))
			return (all[i].place);
	return (NULL);
}

/* In another coding of the user name the wrong bytes would be compared. */
static bool
changes_user(struct text name, struct text value)
{
	return (text_ieq(name, TEXT("username*")) ||
		(text_ieq(name, TEXT("userhash")) && !text_ieq(value, TEXT("false"))));
}

static bool
read_parameter(struct text *rest, struct authorization *a)
{
	struct text name = token(rest), value, *place;

	skip_blanks(rest);
	if (name.n == 0 || rest->n == 0 || rest->p[0] != '=')
		return (false);
	text_take(rest, 1);
	skip_blanks(rest);
	value = value_of(rest, a);
	if (value.p == NULL || changes_user(name, value))
		return (false);
	place = place_of(a, name);
	if (place != NULL && place->p != NULL)
		return (false);
	if (place != NULL)
		*place = value;
	skip_blanks(rest);
	return (rest->n == 0 || rest->p[0] == ',');
}

static enum authorization_kind
read_digest(struct text rest, struct authorization *a)
{
	for (skip_blanks(&rest); rest.n != 0; skip_blanks(&rest)) {
		if (rest.p[0] == ',') {
			text_take(&rest, 1);
			continue;
		}
		if (!read_parameter(&rest, a))
			return (AUTHORIZATION_BAD);
	}
	if (a->user.n == 0 || !is_user(a->user) || a->realm.p == NULL || a->nonce.p == NULL ||
	    a->uri.p == NULL || a->response.p == NULL)
		return (AUTHORIZATION_BAD);
	return (AUTHORIZATION_DIGEST);
}

enum authorization_kind
authorization_read(struct text value, struct authorization *a)
{
	struct text rest = text_trim(value), scheme = token(&rest);

	memset(a, 0, offsetof(struct authorization, store));
	if (value.n > AUTHORIZATION_MAX)
		return (AUTHORIZATION_BAD);
	if (rest.n == 0)
		return (AUTHORIZATION_OTHER); /* no credentials */
	if (scheme.n == 0 || rest.p[0] != ' ')
		return (AUTHORIZATION_BAD);
	rest = text_trim(rest);
	if (text_ieq(scheme, TEXT("Basic")))
		return (read_basic(rest, a));
	if (text_ieq(scheme, TEXT("Digest")))
		return (read_digest(rest, a));
	return (AUTHORIZATION_OTHER);
}
