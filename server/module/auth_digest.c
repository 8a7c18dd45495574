/* server/module/auth_digest.c -- Digest access (RFC 7616): challenges, and what a client answers.
 *
 *   nonce  = TIME "-" HASH(secret; TIME, realm, algorithm), good for ten minutes
 *
 * The server keeps no list of nonces, so clients cost no memory.
 * An answer that was overheard can be sent again for the same method and URI until its nonce is too
 * old.  An old nonce of this server gets a new one with stale=true, and no password is asked for.
 */
#include <stdio.h>

#include "base/buf.h"
#include "server/module/auth.h"

#define MAC_DIGITS 32u
#define NONCE_MAX  64u

static const struct {
	unsigned algorithm;
	const char *name;
} algorithms[] = { { AUTH_SHA256, "SHA-256" }, { AUTH_MD5, "MD5" } };

static void
nonce_make(const struct auth_row *row, uint64_t at_s, const char *algorithm, char nonce[NONCE_MAX])
{
	unsigned char key[AUTH_KEY];
	char time[24];
	size_t i;
	int n = snprintf(time, sizeof(time), "%llx", (unsigned long long)at_s);
	const struct text parts[] = { { time, (size_t)n }, row->realm, text_of(algorithm) };

	auth_keyed(row->secret, parts, 3, key);
	n = snprintf(nonce, NONCE_MAX, "%s-", time);
	for (i = 0; i < MAC_DIGITS / 2; i++)
		n += snprintf(nonce + n, NONCE_MAX - (size_t)n, "%02x", key[i]);
}

static bool
read_hex(struct text t, uint64_t *v)
{
	size_t i;

	*v = 0;
	for (i = 0; i < t.n; i++) {
		if (text_hex_digit(t.p[i]) < 0)
			return (false);
		*v = *v << 4 | (uint64_t)text_hex_digit(t.p[i]);
	}
	return (t.n > 0 && t.n <= 12);
}

static enum auth_digest
judge_nonce(const struct auth_row *row, struct text nonce, const char *algorithm, uint64_t now_s)
{
	struct text rest = nonce, time;
	char ours[NONCE_MAX];
	uint64_t at;

	if (!text_next(&rest, '-', &time) || !read_hex(time, &at))
		return (DIGEST_STALE); /* of another server, or of an earlier process */
	nonce_make(row, at, algorithm, ours);
	if (!text_eq_secret(nonce, text_of(ours)) || at > now_s + 60 ||
	    now_s > at + AUTH_NONCE_MS / 1000)
		return (DIGEST_STALE);
	return (DIGEST_OK);
}

/* The usual spelling of an algorithm's name.  NULL: the rule does not allow the algorithm. */
static const char *
algorithm_of(const struct auth_row *row, struct text name, unsigned *algorithm)
{
	size_t i;

	if (name.p == NULL)
		name = TEXT("MD5");
	for (i = 0; i < NELEM(algorithms); i++)
		if (text_ieq(name, text_of(algorithms[i].name)) &&
		    (row->algorithms & algorithms[i].algorithm) != 0) {
			*algorithm = algorithms[i].algorithm;
			return (algorithms[i].name);
		}
	return (NULL);
}

/* The absolute form of the same URI is the same. */
static bool
is_target(struct text uri, struct text target)
{
	const char *slash;

	if (text_istarts(uri, TEXT("http://")) || text_istarts(uri, TEXT("https://"))) {
		text_take(&uri, uri.p[4] == ':' ? 7 : 8);
		slash = memchr(uri.p, '/', uri.n);
		if (slash == NULL)
			return (text_eq(target, TEXT("/")));
		text_take(&uri, (size_t)(slash - uri.p));
	}
	return (text_eq(uri, target));
}

enum auth_digest
auth_digest_judge(const struct auth_row *row, const struct authorization *a, struct text target,
    uint64_t now_s, unsigned *algorithm)
{
	const char *name = algorithm_of(row, a->algorithm, algorithm);
	uint64_t nc;

	if (a->qop.p == NULL)
		return (DIGEST_WRONG); /* RFC 2069; the challenge asks for a qop */
	if (!text_ieq(a->qop, TEXT("auth")) || a->cnonce.p == NULL || a->cnonce.n == 0 ||
	    a->nc.n != 8 || !read_hex(a->nc, &nc) || nc == 0)
		return (DIGEST_BAD);
	if (name == NULL || a->response.n != (*algorithm == AUTH_SHA256 ? 64u : 32u) ||
	    !is_target(a->uri, target))
		return (DIGEST_BAD);
	if (!text_eq(a->realm, row->realm))
		return (DIGEST_WRONG);
	return (judge_nonce(row, a->nonce, name, now_s));
}

static void
lower(char *hex, struct text from)
{
	size_t i;

	for (i = 0; i < from.n && i < HEX_MAX - 1; i++)
		hex[i] = (char)byte_lower(from.p[i]);
	hex[i] = '\0';
}

bool
auth_digest_fits(const struct auth_check *k, struct text secret)
{
	const struct authorization *a = &k->said;
	char ha1[HEX_MAX], ha2[HEX_MAX], ours[HEX_MAX], theirs[HEX_MAX];
	const struct text second[] = { text_of(k->method), a->uri, TEXT_NONE };
	const struct text all[] = { { ha1, secret.n }, a->nonce, a->nc, a->cnonce, a->qop,
		{ ha2, secret.n }, TEXT_NONE };

	if (secret.n >= HEX_MAX || a->response.n != secret.n)
		return (false);
	lower(ha1, secret);
	lower(theirs, a->response);
	auth_hash(k->algorithm, second, ha2);
	auth_hash(k->algorithm, all, ours);
	return (text_eq_secret(text_of(ours), text_of(theirs)));
}

void
auth_challenge(const struct auth_row *row, uint64_t now_s, bool stale, struct buf *lines)
{
	char nonce[NONCE_MAX];
	size_t i;

	if (row->method == AUTH_BASIC)
		buf_printf(lines, "WWW-Authenticate: Basic realm=\"%s\", charset=\"UTF-8\"\r\n",
		    row->realm_quoted.p);
	if (row->method != AUTH_DIGEST)
		return;
	for (i = 0; i < NELEM(algorithms); i++) {
		if ((row->algorithms & algorithms[i].algorithm) == 0)
			continue;
		nonce_make(row, now_s, algorithms[i].name, nonce);
		buf_printf(lines,
		    "WWW-Authenticate: Digest realm=\"%s\", charset=\"UTF-8\", algorithm=%s, "
		    "nonce=\"%s\", qop=\"auth\"%s\r\n",
		    row->realm_quoted.p, algorithms[i].name, nonce, stale ? ", stale=true" : "");
	}
}
