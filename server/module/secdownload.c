/* server/module/secdownload.c -- secdownload.*: links that an application signs, good for a time.
 *
 *   PREFIX MAC / TIME /name      TIME: eight hexadecimal digits, seconds since 1970
 *
 *   md5          MAC = MD5(secret "/name" TIME), 32 digits
 *   hmac-sha1    MAC = base64url of HMAC(secret, "/TIME/name"), 27 characters
 *   hmac-sha256  the same, 43 characters
 *
 * A wrong MAC gives 403; a TIME too far from now gives 410.  A path below the prefix that is not
 * such a link gives 403, too: only links are served there.
 */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

#include "files/root.h"
#include "server/config/config.h"
#include "server/config/site.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/reply/scope.h"
#include "server/request/request.h"
#include "server/worker/base.h"

#define TIME_DIGITS 8u

struct secdownload { /* of a request: a condition may change each of the settings */
	const struct root *root;
	struct text prefix; /* with slashes around it */
	size_t mac;         /* characters */
	bool md5;
	GChecksumType type;
};

struct link_parts {
	struct text mac, time;
	struct text name;  /* begins with a slash */
	struct text stamp; /* "/TIME/name" */
};

/* ---- the setting */

static const void *
key(const struct conf *c)
{
	return (c->secdownload_root != NULL ? c->secdownload_root : c->secdownload_secret);
}

static const char *
fault_of(const struct conf *c)
{
	size_t n = c->secdownload_prefix != NULL ? strlen(c->secdownload_prefix) : 0;

	if (c->secdownload_root == NULL)
		return ("secdownload.document-root is needed, too");
	if (c->secdownload_secret == NULL || strlen(c->secdownload_secret) < 8)
		return ("secdownload.secret needs at least 8 bytes");
	if (n < 2 || c->secdownload_prefix[0] != '/' || c->secdownload_prefix[n - 1] != '/')
		return ("secdownload.uri-prefix begins and ends with a slash, and is not \"/\"");
	return (NULL);
}

static void *
make(const struct conf *c, char *err, size_t errsize)
{
	struct root *root = calloc(1, sizeof(*root));
	const char *why = fault_of(c);
	int error = 0;

	if (root == NULL)
		return (rules_no_memory(err, errsize));
	if (why == NULL && (error = root_open(c->secdownload_root, root)) != 0)
		why = io_root_error(error);
	if (why == NULL)
		return (root);
	snprintf(err, errsize, "%s", why);
	free(root);
	return (NULL);
}

static void
root_free(void *made)
{
	root_close(made);
	free(made);
}

const struct rules_kind rules_secdownload = {
	.directive = "secdownload.document-root secdownload.secret secdownload.uri-prefix",
	.key = key,
	.make = make,
	.free = root_free,
};

/* ---- a link */

static bool
is_hex(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (text_hex_digit(t.p[i]) < 0)
			return (false);
	return (true);
}

/* Splits a link into its parts.  False: the path does not have the form of a link. */
static bool
parts_of(const struct secdownload *s, struct text path, struct link_parts *l)
{
	text_take(&path, s->prefix.n);
	l->mac = text_take(&path, s->mac);
	l->stamp = path;
	if (text_take(&path, 1).n == 0 || l->stamp.p[0] != '/')
		return (false);
	l->time = text_take(&path, TIME_DIGITS);
	l->name = path;
	return (l->time.n == TIME_DIGITS && is_hex(l->time) && path.n > 1 && path.p[0] == '/');
}

/* The name up to this many segments; 0: all of it. */
static struct text
cut(struct text t, uint64_t segments)
{
	size_t i;

	for (i = 1; segments != 0 && i < t.n; i++)
		if (t.p[i] == '/' && --segments == 0)
			t.n = i;
	return (t);
}

static void
put_md5(const char *secret, struct text name, struct text query, struct text time, char *out)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_MD5);

	g_checksum_update(sum, (const guchar *)secret, -1);
	g_checksum_update(sum, (const guchar *)name.p, (gssize)name.n);
	if (query.p != NULL) {
		g_checksum_update(sum, (const guchar *)"?", 1);
		g_checksum_update(sum, (const guchar *)query.p, (gssize)query.n);
	}
	g_checksum_update(sum, (const guchar *)time.p, (gssize)time.n);
	memcpy(out, g_checksum_get_string(sum), 33);
	g_checksum_free(sum);
}

static void
put_hmac(const struct secdownload *s, const char *secret, struct text stamp, struct text query,
    char *out)
{
	GHmac *mac = g_hmac_new(s->type, (const guchar *)secret, strlen(secret));
	guint8 digest[32];
	gsize n = sizeof(digest);
	char *base64;
	size_t i;

	g_hmac_update(mac, (const guchar *)stamp.p, (gssize)stamp.n);
	if (query.p != NULL) {
		g_hmac_update(mac, (const guchar *)"?", 1);
		g_hmac_update(mac, (const guchar *)query.p, (gssize)query.n);
	}
	g_hmac_get_digest(mac, digest, &n);
	g_hmac_unref(mac);
	base64 = g_base64_encode(digest, n);
	for (i = 0; i < s->mac; i++)
		out[i] = base64[i] == '+' ? '-' : base64[i] == '/' ? '_' : base64[i];
	g_free(base64);
}

static bool
is_signed(const struct request *r, const struct secdownload *s, const struct link_parts *l)
{
	const struct conf *c = r->conf;
	struct text query =
	    c->secdownload_query && r->http.query.n != 0 ? r->http.query : TEXT_NONE;
	struct text name = cut(l->name, c->secdownload_segments);
	char is[64], theirs[64];
	size_t i;

	if (s->md5)
		put_md5(c->secdownload_secret, name, query, l->time, is);
	else
		put_hmac(s, c->secdownload_secret,
		    (struct text){ l->stamp.p, 1 + TIME_DIGITS + name.n }, query, is);
	for (i = 0; i < s->mac; i++)
		theirs[i] = s->md5 ? (char)byte_lower(l->mac.p[i]) : l->mac.p[i];
	return (text_eq_secret((struct text){ is, s->mac }, (struct text){ theirs, s->mac }));
}

static bool
is_now(const struct request *r, struct text time)
{
	uint64_t at = 0, now = io_wall_s(r->worker->io);
	size_t i;

	for (i = 0; i < time.n; i++)
		at = at << 4 | (uint64_t)text_hex_digit(time.p[i]);
	return ((at > now ? at - now : now - at) <= r->conf->secdownload_timeout);
}

/* The settings for links.  False: they are not set, or the path of the request does not begin with
 * their prefix. */
static bool
rule_of(const struct request *r, struct secdownload *s)
{
	const struct conf *c = r->conf;

	*s = (struct secdownload){ .root = r->site->rules[RULES_secdownload],
		.prefix = text_of(c->secdownload_prefix),
		.md5 = strcmp(c->secdownload_algorithm, "md5") == 0,
		.type = strcmp(c->secdownload_algorithm, "hmac-sha1") == 0 ? G_CHECKSUM_SHA1
									   : G_CHECKSUM_SHA256 };
	s->mac = s->md5 ? 32 : s->type == G_CHECKSUM_SHA1 ? 27 : 43;
	return (s->root != NULL && s->prefix.n != 0 && text_starts(request_path(r), s->prefix));
}

static const struct handler *
route_secdownload(struct request *r)
{
	struct secdownload s;
	struct link_parts l;

	if (!rule_of(r, &s))
		return (NULL);
	if (r->conf->secdownload_secret == NULL || !parts_of(&s, request_path(r), &l) ||
	    !is_signed(r, &s, &l))
		return (module_refuses(r, 403, TEXT_NONE));
	return (is_now(r, l.time) ? NULL : module_refuses(r, 410, TEXT_NONE));
}

static int
place_secdownload(struct request *r)
{
	struct secdownload s;
	struct link_parts l;

	if (!rule_of(r, &s))
		return (0);
	if (!parts_of(&s, request_path(r), &l))
		return (403);
	r->place = (struct place){ reply_scope(r->site, s.root), TEXT_NONE, s.root->name, l.name };
	return (r->place.scope != NULL ? 0 : 500);
}

static bool
is_used(const struct conf *c)
{
	return (c->secdownload_root != NULL);
}

const struct module module_secdownload = {
	.name = "secdownload",
	.is_used = is_used,
	.route = route_secdownload,
	.place = place_secdownload,
};
