/* server/config/verifiers.c -- see verifiers.h */
#include "server/config/verifiers.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "io/tls/verifier.h"
#include "server/config/config.h"
#include "server/config/record.h"

struct verifiers {
	GHashTable *made; /* by name_of() -> struct tls_verifier */
	struct tls_verifier *nobody;
};

struct verifying {
	struct verifiers *p;
	const struct config *config;
	const struct conf *c; /* the values that are looked at now */
	struct sources *sources;
	char *err;
	size_t errsize;
};

struct file { /* of a setting; name NULL: none */
	const char *directive, *name;
};

static bool
is_set(const char *s)
{
	return (s != NULL && s[0] != '\0');
}

/* lighttpd, too, takes ssl.ca-file for want of another one. */
static struct file
file_of(const struct conf *c, enum tls_verifier_file which)
{
	struct file files[] = {
		[VERIFIER_AUTHORITIES] = { "ssl.verifyclient.ca-file", c->ssl_verify_ca },
		[VERIFIER_NAMES] = { "ssl.verifyclient.ca-dn-file", c->ssl_verify_names },
		[VERIFIER_REVOKED] = { "ssl.verifyclient.ca-crl-file", c->ssl_verify_revoked },
	};

	if (which == VERIFIER_AUTHORITIES && !is_set(c->ssl_verify_ca))
		return (
		    (struct file){ "ssl.ca-file", is_set(c->ssl_ca_file) ? c->ssl_ca_file : NULL });
	if (!is_set(files[which].name))
		files[which].name = NULL;
	return (files[which]);
}

static char *
name_of(const struct conf *c)
{
	GString *s = g_string_new(NULL);
	const char *file;
	unsigned i;

	g_string_printf(s, "%d %d %u", c->ssl_verify_enforce, c->ssl_verify_export,
	    (unsigned)c->ssl_verify_depth);
	for (i = 0; i < VERIFIER_FILES; i++) {
		file = file_of(c, i).name;
		g_string_append_printf(s, "\n%s", file != NULL ? file : "");
	}
	return (g_string_free(s, FALSE));
}

static bool
refuse(struct verifying *k, struct file f, const char *why)
{
	char line[512];

	snprintf(line, sizeof(line), "\"%s\": %s", f.name, why);
	return (config_refuse(k->config, k->c, f.directive, line, k->err, k->errsize));
}

/* ---- one of them */

static bool
make(struct verifying *k, const struct source *files)
{
	const struct conf *c = k->c;
	struct tls_verifier_settings set = { .depth = (unsigned)c->ssl_verify_depth,
		.enforce = c->ssl_verify_enforce,
		.exports = c->ssl_verify_export };
	enum tls_verifier_file of;
	struct tls_verifier *v;
	const char *why;
	unsigned i;

	for (i = 0; i < VERIFIER_FILES; i++)
		if (file_of(c, i).name != NULL)
			set.pem[i] = files[i].bytes.p != NULL ? files[i].bytes : TEXT("");
	v = tls_verifier_new(&set, &of, &why);
	if (v == NULL)
		return (refuse(k, file_of(c, of), why));
	g_hash_table_insert(k->p->made, name_of(c), v);
	return (true);
}

static bool
load(struct verifying *k)
{
	struct source files[VERIFIER_FILES] = { 0 };
	bool ok = true;
	struct file f;
	unsigned i;

	for (i = 0; ok && i < VERIFIER_FILES; i++) {
		f = file_of(k->c, i);
		if (f.name == NULL)
			continue;
		files[i] = sources_get(k->sources, SOURCE_FILE, f.name, NULL);
		if (files[i].err != 0)
			ok = refuse(k, f, strerror(-files[i].err));
	}
	ok = ok && make(k, files);
	for (i = 0; i < VERIFIER_FILES; i++)
		source_free(&files[i]);
	return (ok);
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

	k->c = c;
	if (!c->ssl_verify || has(k->p, c))
		return (true);
	if (file_of(c, VERIFIER_AUTHORITIES).name == NULL)
		return (config_refuse(k->config, c, "ssl.verifyclient.activate",
		    "ssl.verifyclient.ca-file is not set; write the file with the authorities that "
		    "sign for clients",
		    k->err, k->errsize));
	return (load(k));
}

static bool
of_socket(struct verifying *k, const char *socket)
{
	struct conf c;

	config_socket(k->config, socket, &c);
	return (!c.ssl_engine || config_each_at(k->config, socket, of_block, k));
}

/* Of each socket, and of one that the service manager passes and no block names. */
static bool
load_all(struct verifying *k)
{
	const char *name;
	size_t i;

	for (i = 0; (name = config_listen(k->config, i)) != NULL; i++)
		if (!of_socket(k, name))
			return (false);
	return (!config_global(k->config)->ssl_engine || config_each(k->config, of_block, k));
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
		.config = config,
		.sources = config_sources(config),
		.err = err,
		.errsize = errsize };

	p->made = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, verifier_free);
	p->nobody = tls_verifier_nobody();
	if (p->nobody == NULL)
		snprintf(err, errsize, "not enough memory");
	else if (load_all(&k))
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
	struct asking *a = arg;
	struct source is;
	const char *file;
	unsigned i;

	for (i = 0; c->ssl_verify && i < VERIFIER_FILES; i++) {
		file = file_of(c, i).name;
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
