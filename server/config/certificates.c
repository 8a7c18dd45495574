/* server/config/certificates.c -- see certificates.h */
#include "server/config/certificates.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "io/tls/tls.h"
#include "server/config/config.h"
#include "server/config/record.h"

struct certificates {
	GHashTable *made; /* by name_of() -> struct io_secure */
};

struct loading {
	struct certificates *p;
	const struct config *config;
	const struct conf *c; /* the values that are looked at now */
	struct sources *sources;
	char *err;
	size_t errsize;
};

static bool
is_set(const char *s)
{
	return (s != NULL && s[0] != '\0');
}

static bool
refuse(struct loading *k, const char *directive, const char *why)
{
	return (config_refuse(k->config, k->c, directive, why, k->err, k->errsize));
}

static bool
refuse_value(struct loading *k, const char *directive, const char *value, const char *why)
{
	char line[512];

	snprintf(line, sizeof(line), "\"%s\": %s", value, why);
	return (refuse(k, directive, line));
}

/* Blocks that do not set a map share its rows. */
static char *
name_of(const struct conf *c)
{
	const struct conf_map *cmds = &c->ssl_conf_cmd;

	return (g_strdup_printf("%s\n%s\n%p", c->ssl_pemfile,
	    is_set(c->ssl_privkey) ? c->ssl_privkey : "", cmds->n != 0 ? (void *)cmds->v : NULL));
}

/* ---- one certificate */

static struct source
pem_get(struct loading *k, const char *file)
{
	return (sources_get(k->sources, SOURCE_FILE, file, NULL));
}

static bool
refuse_fault(struct loading *k, const struct tls_fault *fault)
{
	const struct conf *c = k->c;

	if (fault->of == TLS_OF_COMMANDS)
		return (refuse(k, "ssl.openssl.ssl-conf-cmd", fault->why));
	return (fault->of == TLS_OF_KEY && is_set(c->ssl_privkey)
		    ? refuse_value(k, "ssl.privkey", c->ssl_privkey, fault->why)
		    : refuse_value(k, "ssl.pemfile", c->ssl_pemfile, fault->why));
}

static bool
make(struct loading *k, struct text chain, struct text key)
{
	const struct conf_map *rows = &k->c->ssl_conf_cmd;
	struct tls_command *cmds = g_new0(struct tls_command, rows->n + 1);
	struct tls_settings set = { chain, key, cmds, rows->n };
	struct tls_fault fault;
	struct io_secure *s;
	size_t i;

	for (i = 0; i < rows->n; i++)
		cmds[i] = (struct tls_command){ rows->v[i].key.p, rows->v[i].value.p };
	s = tls_secure_new(&set, &fault);
	g_free(cmds);
	if (s == NULL)
		return (refuse_fault(k, &fault));
	g_hash_table_insert(k->p->made, name_of(k->c), s);
	return (true);
}

static bool
load(struct loading *k)
{
	const struct conf *c = k->c;
	bool apart = is_set(c->ssl_privkey), ok;
	struct source chain, key = { 0 };

	if (!is_set(c->ssl_pemfile))
		return (refuse(k, "ssl.engine",
		    "ssl.pemfile is not set; write the file with the certificate"));
	chain = pem_get(k, c->ssl_pemfile);
	if (apart)
		key = pem_get(k, c->ssl_privkey);
	if (chain.err != 0)
		ok = refuse_value(k, "ssl.pemfile", c->ssl_pemfile, strerror(-chain.err));
	else if (key.err != 0)
		ok = refuse_value(k, "ssl.privkey", c->ssl_privkey, strerror(-key.err));
	else
		ok = make(k, chain.bytes,
		    apart ? (struct text){ key.bytes.p != NULL ? key.bytes.p : "", key.bytes.n }
			  : TEXT_NONE);
	source_free(&chain);
	source_free(&key);
	return (ok);
}

/* ---- all of them */

static bool
of_socket(struct loading *k, const struct conf *c)
{
	k->c = c;
	return (!c->ssl_engine || certificates_get(k->p, c) != NULL || load(k));
}

/* Certificates of hosts: of all blocks, since a block does not say which sockets it is for. */
static bool
of_block(const struct conf *c, void *arg)
{
	struct loading *k = arg;

	k->c = c;
	return (!is_set(c->ssl_pemfile) || certificates_get(k->p, c) != NULL || load(k));
}

/* Of each socket, and of one that the service manager passes and no block names. */
static bool
load_all(struct loading *k)
{
	bool some = config_global(k->config)->ssl_engine;
	const char *name;
	struct conf c;
	size_t i;

	for (i = 0; (name = config_listen(k->config, i)) != NULL; i++) {
		config_socket(k->config, name, &c);
		if (!of_socket(k, &c))
			return (false);
		some = some || c.ssl_engine;
	}
	return (of_socket(k, config_global(k->config)) &&
		(!some || config_each(k->config, of_block, k)));
}

static void
secure_free(void *secure)
{
	tls_secure_free(secure);
}

struct certificates *
certificates_new(const struct config *config, char *err, size_t errsize)
{
	struct certificates *p = g_new0(struct certificates, 1);
	struct loading k = { .p = p,
		.config = config,
		.sources = config_sources(config),
		.err = err,
		.errsize = errsize };

	p->made = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, secure_free);
	if (load_all(&k))
		return (p);
	certificates_free(p);
	return (NULL);
}

void
certificates_free(struct certificates *p)
{
	if (p == NULL)
		return;
	g_hash_table_destroy(p->made);
	g_free(p);
}

const struct io_secure *
certificates_get(const struct certificates *p, const struct conf *c)
{
	const struct io_secure *s;
	char *name;

	if (!is_set(c->ssl_pemfile))
		return (NULL);
	name = name_of(c);
	s = g_hash_table_lookup(p->made, name);
	g_free(name);
	return (s);
}

/* ---- what a record has */

struct fetching {
	struct sources *sources;
	GHashTable *asked;
};

/* Once: thousands of blocks may be within one that sets it. */
static void
pem_fetch(struct fetching *f, const char *file)
{
	struct source is;

	if (!is_set(file) || !g_hash_table_add(f->asked, (char *)file))
		return;
	is = sources_get(f->sources, SOURCE_FILE, file, NULL);
	source_free(&is);
}

static bool
fetch(const struct conf *c, void *arg)
{
	pem_fetch(arg, c->ssl_pemfile);
	pem_fetch(arg, c->ssl_privkey);
	return (true);
}

void
certificates_fetch(const struct config *config)
{
	struct fetching f = { config_sources(config), g_hash_table_new(g_str_hash, g_str_equal) };

	config_each(config, fetch, &f);
	g_hash_table_destroy(f.asked);
}
