/* server/module/auth_hash.c -- hashes of passwords and nonces; see auth.h.
 *
 * crypt(3) knows what the system knows (yescrypt, bcrypt, SHA-512 ...).  $apr1$ and {SHA} are of
 * Apache's htpasswd.
 */
#include <crypt.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sysexits.h>

#include "base/must.h"
#include "server/module/auth.h"

#define MD5_LEN     16
#define APR1        "$apr1$"
#define APR1_SALT   8
#define APR1_ROUNDS 1000
#define SHA1_LEN    20

static GChecksumType
type_of(unsigned algorithm)
{
	return (algorithm == AUTH_SHA256 ? G_CHECKSUM_SHA256 : G_CHECKSUM_MD5);
}

static void
add(GChecksum *sum, const void *p, size_t n)
{
	g_checksum_update(sum, p, (gssize)n);
}

size_t
auth_hash(unsigned algorithm, const struct text *parts, char hex[HEX_MAX])
{
	GChecksum *sum = g_checksum_new(type_of(algorithm));
	const struct text *t;
	size_t n;

	for (t = parts; t->p != NULL; t++) {
		if (t != parts)
			add(sum, ":", 1);
		add(sum, t->p, t->n);
	}
	n = strlen(g_checksum_get_string(sum));
	must(n < HEX_MAX);
	memcpy(hex, g_checksum_get_string(sum), n + 1);
	g_checksum_free(sum);
	return (n);
}

/* ---- the secret of the process */

static unsigned char process_secret[AUTH_KEY];

/* Runs before main(): later the process may have no rights and other threads. */
static void __attribute__((constructor)) secret_start(void)
{
	if (getrandom(process_secret, sizeof(process_secret), 0) == (ssize_t)sizeof(process_secret))
		return;
	perror("getrandom");
	exit(EX_OSERR);
}

void
auth_keyed(struct text secret, const struct text *parts, size_t n, unsigned char key[AUTH_KEY])
{
	GHmac *mac = secret.n != 0
			 ? g_hmac_new(G_CHECKSUM_SHA256, (const guchar *)secret.p, secret.n)
			 : g_hmac_new(G_CHECKSUM_SHA256, process_secret, sizeof(process_secret));
	gsize len = AUTH_KEY;
	size_t i;

	for (i = 0; i < n; i++) {
		/* hashes the length first: "a", "bc" is not "ab", "c" */
		g_hmac_update(mac, (const guchar *)&parts[i].n, sizeof(parts[i].n));
		if (parts[i].n != 0)
			g_hmac_update(mac, (const guchar *)parts[i].p, (gssize)parts[i].n);
	}
	g_hmac_get_digest(mac, key, &len);
	g_hmac_unref(mac);
}

/* ---- $apr1$salt$hash */

static void
md5_end(GChecksum *sum, unsigned char out[MD5_LEN])
{
	gsize n = MD5_LEN;

	g_checksum_get_digest(sum, out, &n);
	g_checksum_free(sum);
}

static void
apr1_first(struct text pw, struct text salt, unsigned char out[MD5_LEN])
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_MD5);
	size_t i;

	add(sum, pw.p, pw.n);
	add(sum, salt.p, salt.n);
	add(sum, pw.p, pw.n);
	md5_end(sum, out);
	sum = g_checksum_new(G_CHECKSUM_MD5);
	add(sum, pw.p, pw.n);
	add(sum, APR1, sizeof(APR1) - 1);
	add(sum, salt.p, salt.n);
	for (i = pw.n; i > 0; i -= i < MD5_LEN ? i : MD5_LEN)
		add(sum, out, i < MD5_LEN ? i : MD5_LEN);
	for (i = pw.n; i != 0; i >>= 1)
		add(sum, (i & 1) != 0 ? "" : pw.p, 1);
	md5_end(sum, out);
}

static void
apr1_round(unsigned i, struct text pw, struct text salt, unsigned char sum_of[MD5_LEN])
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_MD5);

	if ((i & 1) != 0)
		add(sum, pw.p, pw.n);
	else
		add(sum, sum_of, MD5_LEN);
	if (i % 3 != 0)
		add(sum, salt.p, salt.n);
	if (i % 7 != 0)
		add(sum, pw.p, pw.n);
	if ((i & 1) != 0)
		add(sum, sum_of, MD5_LEN);
	else
		add(sum, pw.p, pw.n);
	md5_end(sum, sum_of);
}

static char *
apr1_digits(char *to, uint32_t v, unsigned n)
{
	static const char digits[] =
	    "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	for (; n > 0; n--, v >>= 6)
		*to++ = digits[v & 63];
	return (to);
}

static bool
apr1_fits(struct text hash, struct text pw)
{
	unsigned char b[MD5_LEN];
	char out[24], *p = out;
	struct text salt;
	unsigned i;

	text_take(&hash, sizeof(APR1) - 1);
	if (!text_next(&hash, '$', &salt) || hash.p == NULL)
		return (false);
	salt.n = salt.n < APR1_SALT ? salt.n : APR1_SALT;
	apr1_first(pw, salt, b);
	for (i = 0; i < APR1_ROUNDS; i++)
		apr1_round(i, pw, salt, b);
	for (i = 0; i < 5; i++)
		p = apr1_digits(p, (uint32_t)(b[i] << 16 | b[i + 6] << 8 | b[i == 4 ? 5 : i + 12]),
		    4);
	p = apr1_digits(p, b[11], 2);
	return (text_eq_secret(hash, (struct text){ out, (size_t)(p - out) }));
}

/* ---- {SHA}base64 */

static bool
sha_fits(struct text hash, struct text pw)
{
	char want[48];
	gsize n = SHA1_LEN;
	unsigned char is[SHA1_LEN];
	GChecksum *sum;

	text_take(&hash, 5);
	if (hash.n != 28 || base64_decode(hash, want) != SHA1_LEN)
		return (false);
	sum = g_checksum_new(G_CHECKSUM_SHA1);
	add(sum, pw.p, pw.n);
	g_checksum_get_digest(sum, is, &n);
	g_checksum_free(sum);
	return (text_eq_secret((struct text){ want, SHA1_LEN },
	    (struct text){ (const char *)is, SHA1_LEN }));
}

/* ---- crypt(3) */

static bool
crypt_fits(const char *hash, const char *password)
{
	struct crypt_data *data = calloc(1, sizeof(*data)); /* 32 kB */
	const char *is;
	bool fits;

	if (data == NULL)
		return (false);
	is = crypt_r(password, hash, data);
	fits = is != NULL && is[0] != '*' && text_eq_secret(text_of(is), text_of(hash));
	explicit_bzero(data, sizeof(*data));
	free(data);
	return (fits);
}

bool
auth_password_fits(struct text hash, const char *password)
{
	char line[CRYPT_OUTPUT_SIZE];

	if (text_starts(hash, TEXT(APR1)))
		return (apr1_fits(hash, text_of(password)));
	if (text_starts(hash, TEXT("{SHA}")))
		return (sha_fits(hash, text_of(password)));
	/* Not shorter than a hash of DES: some versions of crypt(3) accept any password for an
	 * empty hash. */
	if (hash.n < 13 || hash.n >= sizeof(line))
		return (false);
	memcpy(line, hash.p, hash.n);
	line[hash.n] = '\0';
	return (crypt_fits(line, password));
}
