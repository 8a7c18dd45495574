/* server/config/verifiers.c -- see verifiers.h */
#include "server/config/verifiers.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "io/tls/verifier.h"
#include "server/config/config.h"
#include "server/config/file_set.h"

struct verifiers {
	GHashTable *made; /* by name_of() -> struct known_verifier */
	struct tls_verifier *nobody;
	unsigned turn; /* renewals so far */
};

struct known_verifier {
	struct tls_verifier *v;
	struct made_of of;
	unsigned turn; /* of the renewal that has looked at it */
};

struct verifying {
	struct verifiers *p;
	struct conf_refusal at;
	struct sources *sources;
	certificates_news *news; /* NULL: they are loaded for the first time */
	void *arg;
};

/* lighttpd, too, takes ssl.ca-file for want of another one. */
static struct file_set
files_of(const struct conf *c)
{
	struct file_set s = { 0 }; /* numbers as of enum tls_verifier_file */

	if (conf_is_set(c->ssl_verify_ca))
		file_set_add(&s, "ssl.verifyclient.ca-file", c->ssl_verify_ca, false);
	else
		file_set_add(&s, "ssl.ca-file", c->ssl_ca_file, false);
	file_set_add(&s, "ssl.verifyclient.ca-dn-file", c->ssl_verify_names, false);
	file_set_add(&s, "ssl.verifyclient.ca-crl-file", c->ssl_verify_revoked, false);
	return (s);
}

static char *
name_of(const struct conf *c)
{
	const struct file_set files = files_of(c);
	GString *s = g_string_new(NULL);
	unsigned i;

	g_string_printf(s, "%d %d %u", c->ssl_verify_enforce, c->ssl_verify_export,
	    (unsigned)c->ssl_verify_depth);
	for (i = 0; i < files.n; i++)
		g_string_append_printf(s, "\n%s", files.v[i].name != NULL ? files.v[i].name : "");
	return (g_string_free(s, FALSE));
}

/* ---- one of them */

/* NULL: refused. */
static struct tls_verifier *
make(const struct conf_refusal *at, const struct file_set *files)
{
	const struct conf *c = at->c;
	struct tls_verifier_settings set = { .depth = (unsigned)c->ssl_verify_depth,
		.enforce = c->ssl_verify_enforce,
		.exports = c->ssl_verify_export };
	enum tls_verifier_file of;
	struct tls_verifier *v;
	const char *why;
	unsigned i;

	if (!file_set_is_there(files, at))
		return (NULL);
	for (i = 0; i < files->n; i++)
		set.pem[i] = file_set_text(files, i);
	v = tls_verifier_new(&set, &of, &why);
	if (v == NULL)
		(void)config_refuse_value(at, files->v[of].directive, files->v[of].name, why);
	return (v);
}

static struct file_set
read_files(const struct verifying *k)
{
	struct file_set files = files_of(k->at.c);

	file_set_read(&files, k->sources);
	return (files);
}

static bool
load(struct verifying *k)
{
	struct file_set files = read_files(k);
	struct tls_verifier *v = make(&k->at, &files);
	struct known_verifier *one;

	if (v != NULL) {
		one = g_new0(struct known_verifier, 1);
		one->v = v;
		made_of_note(&one->of, &files, true);
		g_hash_table_insert(k->p->made, name_of(k->at.c), one);
	}
	file_set_free(&files);
	return (v != NULL);
}

static void
renew_from(struct verifying *k, struct known_verifier *one, const struct file_set *files)
{
	struct tls_verifier *v = make(&k->at, files);

	made_of_note(&one->of, files, v != NULL);
	if (v != NULL)
		tls_verifier_renew(one->v, v);
	k->news(k->arg, files->v[VERIFIER_AUTHORITIES].name, v == NULL ? k->at.err : NULL, NULL);
}

static void
renew(struct verifying *k, struct known_verifier *one)
{
	struct file_set files;

	if (one->turn == k->p->turn)
		return;
	one->turn = k->p->turn;
	files = read_files(k);
	if (made_of_others(&one->of, &files))
		renew_from(k, one, &files);
	file_set_free(&files);
}

/* ---- all of them */

static struct known_verifier *
find(const struct verifiers *p, const struct conf *c)
{
	char *name = name_of(c);
	struct known_verifier *one = g_hash_table_lookup(p->made, name);

	g_free(name);
	return (one);
}

static bool
of_block(const struct conf *c, void *arg)
{
	struct verifying *k = arg;
	struct known_verifier *one;

	k->at.c = c;
	if (!c->ssl_verify)
		return (true);
	one = find(k->p, c);
	if (one != NULL && k->news != NULL)
		renew(k, one);
	if (one != NULL || k->news != NULL)
		return (true);
	if (files_of(c).v[VERIFIER_AUTHORITIES].name == NULL)
		return (config_refuse(&k->at, "ssl.verifyclient.activate",
		    "ssl.verifyclient.ca-file is not set; write the file with the authorities that "
		    "sign for clients"));
	return (load(k));
}

static bool
of_socket(const char *socket, const struct conf *c, void *arg)
{
	struct verifying *k = arg;

	return (config_each_at(k->at.config, socket, of_block, k));
}

static void
one_free(void *verifier)
{
	struct known_verifier *one = verifier;

	tls_verifier_put(one->v);
	made_of_free(&one->of);
	g_free(one);
}

struct verifiers *
verifiers_new(const struct config *config, char *err, size_t errsize)
{
	struct verifiers *p = g_new0(struct verifiers, 1);
	struct verifying k = { .p = p,
		.at = { .config = config, .err = err, .errsize = errsize },
		.sources = config_sources(config) };

	p->made = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, one_free);
	p->nobody = tls_verifier_nobody();
	if (p->nobody == NULL)
		snprintf(err, errsize, "not enough memory");
	else if (config_each_secure(config, of_socket, &k))
		return (p);
	verifiers_free(p);
	return (NULL);
}

void
verifiers_free(struct verifiers *p)
{
	if (p == NULL)
		return;
	g_hash_table_destroy(p->made);
	tls_verifier_put(p->nobody);
	g_free(p);
}

void
verifiers_renew(struct verifiers *p, const struct config *config, struct sources *sources,
    certificates_news *news, void *arg)
{
	char err[512];
	struct verifying k = { .p = p,
		.at = { .config = config, .err = err, .errsize = sizeof(err) },
		.sources = sources,
		.news = news,
		.arg = arg };

	p->turn++;
	(void)config_each_secure(config, of_socket, &k);
}

unsigned
verifiers_refused(const struct verifiers *p)
{
	GHashTableIter at;
	struct known_verifier *one;
	unsigned n = 0;

	g_hash_table_iter_init(&at, p->made);
	while (g_hash_table_iter_next(&at, NULL, (gpointer *)&one))
		n += one->of.refused != NULL;
	return (n);
}

struct tls_verifier *
verifiers_get(const struct verifiers *p, const struct conf *c)
{
	struct known_verifier *one;

	if (!c->ssl_verify)
		return (NULL);
	one = find(p, c);
	return (one != NULL ? one->v : p->nobody);
}

void
verifiers_add_files(const struct conf *c, void (*fn)(const char *file, void *arg), void *arg)
{
	const struct file_set files = files_of(c);
	unsigned i;

	for (i = 0; c->ssl_verify && i < files.n; i++)
		if (files.v[i].name != NULL)
			fn(files.v[i].name, arg);
}
