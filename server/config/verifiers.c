/* server/config/verifiers.c -- see verifiers.h */
#include "server/config/verifiers.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "io/tls/verifier.h"
#include "server/config/config.h"
#include "server/config/file_set.h"

struct verifiers {
	GHashTable *made; /* by name_of() -> struct tls_verifier */
	struct tls_verifier *nobody;
};

struct verifying {
	struct verifiers *p;
	struct conf_refusal at;
	struct sources *sources;
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

static bool
load(struct verifying *k)
{
	struct file_set files = files_of(k->at.c);
	struct tls_verifier *v;

	file_set_read(&files, k->sources);
	v = make(&k->at, &files);
	if (v != NULL)
		g_hash_table_insert(k->p->made, name_of(k->at.c), v);
	file_set_free(&files);
	return (v != NULL);
}

/* ---- all of them */

static bool
has(const struct verifiers *p, const struct conf *c)
{
	char *name = name_of(c);
	bool found = g_hash_table_contains(p->made, name);

	g_free(name);
	return (found);
}

static bool
of_block(const struct conf *c, void *arg)
{
	struct verifying *k = arg;

	k->at.c = c;
	if (!c->ssl_verify || has(k->p, c))
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
verifier_free(void *v)
{
	tls_verifier_put(v);
}

struct verifiers *
verifiers_new(const struct config *config, char *err, size_t errsize)
{
	struct verifiers *p = g_new0(struct verifiers, 1);
	struct verifying k = { .p = p,
		.at = { .config = config, .err = err, .errsize = errsize },
		.sources = config_sources(config) };

	p->made = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, verifier_free);
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

struct tls_verifier *
verifiers_get(const struct verifiers *p, const struct conf *c)
{
	struct tls_verifier *v;
	char *name;

	if (!c->ssl_verify)
		return (NULL);
	name = name_of(c);
	v = g_hash_table_lookup(p->made, name);
	g_free(name);
	return (v != NULL ? v : p->nobody);
}

/* ---- what a record has */

struct asking {
	struct sources *sources;
	GHashTable *asked;
};

/* Once: thousands of blocks may be within one that sets it. */
static bool
fetch(const struct conf *c, void *arg)
{
	const struct file_set files = files_of(c);
	struct asking *a = arg;
	struct source is;
	const char *file;
	unsigned i;

	for (i = 0; c->ssl_verify && i < files.n; i++) {
		file = files.v[i].name;
		if (file == NULL || !g_hash_table_add(a->asked, (char *)(uintptr_t)file))
			continue;
		is = sources_get(a->sources, SOURCE_FILE, file, NULL);
		source_free(&is);
	}
	return (true);
}

void
verifiers_fetch(const struct config *config)
{
	struct asking a = { config_sources(config), g_hash_table_new(g_str_hash, g_str_equal) };

	config_each(config, fetch, &a);
	g_hash_table_destroy(a.asked);
}
