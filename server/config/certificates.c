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

static const char *
word(const char *s)
{
	return (s != NULL ? s : "");
}

/* Blocks that do not set a map share its rows.  ssl.ca-file is not in the name: two blocks that
 * hold for one host may set a certificate and others that complete it. */
static char *
name_of(const struct conf *c)
{
	const struct conf_map *cmds = &c->ssl_conf_cmd;

	return (g_strdup_printf("%s\n%s\n%s\n%s\n%s\n%d\n%p", c->ssl_pemfile, word(c->ssl_privkey),
	    word(c->ssl_ciphers), word(c->ssl_curves), word(c->ssl_dh_file), c->ssl_servers_order,
	    cmds->n != 0 ? (void *)cmds->v : NULL));
}

/* ---- one certificate */

/* The files that settings name, as they are in the record. */
struct pems {
	struct source chain, key, ca, dh;
};

static bool
pem_get(struct loading *k, const char *directive, const char *file, struct source *out)
{
	if (!is_set(file))
		return (true);
	*out = sources_get(k->sources, SOURCE_FILE, file, NULL);
	return (out->err == 0 || refuse_value(k, directive, file, strerror(-out->err)));
}

static bool
pems_get(struct loading *k, struct pems *p)
{
	const struct conf *c = k->c;

	return (pem_get(k, "ssl.pemfile", c->ssl_pemfile, &p->chain) &&
		pem_get(k, "ssl.privkey", c->ssl_privkey, &p->key) &&
		pem_get(k, "ssl.ca-file", c->ssl_ca_file, &p->ca) &&
		pem_get(k, "ssl.dh-file", c->ssl_dh_file, &p->dh));
}

static void
pems_free(struct pems *p)
{
	source_free(&p->chain);
	source_free(&p->key);
	source_free(&p->ca);
	source_free(&p->dh);
}

/* An empty file is one, too. */
static struct text
pem_text(const char *file, const struct source *s)
{
	if (!is_set(file))
		return (TEXT_NONE);
	return ((struct text){ s->bytes.p != NULL ? s->bytes.p : "", s->bytes.n });
}

static bool
refuse_fault(struct loading *k, const struct tls_fault *fault)
{
	const struct conf *c = k->c;
	const struct {
		const char *directive, *value;
	} settings[] = {
		[TLS_OF_CHAIN] = { "ssl.pemfile", c->ssl_pemfile },
		[TLS_OF_KEY] = { "ssl.privkey", c->ssl_privkey },
		[TLS_OF_CA] = { "ssl.ca-file", c->ssl_ca_file },
		[TLS_OF_CIPHERS] = { "ssl.cipher-list", c->ssl_ciphers },
		[TLS_OF_GROUPS] = { "ssl.ec-curve", c->ssl_curves },
		[TLS_OF_DH] = { "ssl.dh-file", c->ssl_dh_file },
	};

	if (fault->of == TLS_OF_COMMANDS)
		return (refuse(k, "ssl.openssl.ssl-conf-cmd", fault->why));
	if (fault->of == TLS_OF_KEY && !is_set(c->ssl_privkey))
		return (refuse_value(k, "ssl.pemfile", c->ssl_pemfile, fault->why));
	return (
	    refuse_value(k, settings[fault->of].directive, settings[fault->of].value, fault->why));
}

static bool
make(struct loading *k, const struct pems *p)
{
	const struct conf *c = k->c;
	const struct conf_map *rows = &c->ssl_conf_cmd;
	struct tls_command *cmds = g_new0(struct tls_command, rows->n + 1);
	const struct tls_settings set = {
		.chain = pem_text(c->ssl_pemfile, &p->chain),
		.key = pem_text(c->ssl_privkey, &p->key),
		.ca = pem_text(c->ssl_ca_file, &p->ca),
		.dh = pem_text(c->ssl_dh_file, &p->dh),
		.ciphers = c->ssl_ciphers,
		.clients_order = !c->ssl_servers_order,
		.groups = c->ssl_curves,
		.commands = cmds,
		.ncommands = rows->n,
	};
	struct tls_fault fault;
	struct io_secure *s;
	size_t i;

	for (i = 0; i < rows->n; i++)
		cmds[i] = (struct tls_command){ rows->v[i].key.p, rows->v[i].value.p };
	s = tls_secure_new(&set, &fault);
	g_free(cmds);
	if (s == NULL)
		return (refuse_fault(k, &fault));
	g_hash_table_insert(k->p->made, name_of(c), s);
	return (true);
}

static bool
load(struct loading *k)
{
	struct pems p = { 0 };
	bool ok = pems_get(k, &p) && make(k, &p);

	pems_free(&p);
	return (ok);
}

/* ---- all of them */

static bool
of_block(const struct conf *c, void *arg)
{
	struct loading *k = arg;

	k->c = c;
	return (!is_set(c->ssl_pemfile) || certificates_get(k->p, c) != NULL || load(k));
}

static bool
of_socket(struct loading *k, const char *socket)
{
	struct conf c;

	config_socket(k->config, socket, &c);
	if (!c.ssl_engine)
		return (true);
	k->c = &c;
	return (is_set(c.ssl_pemfile)
		    ? config_each_at(k->config, socket, of_block, k)
		    : refuse(k, "ssl.engine",
			  "ssl.pemfile is not set; write the file with the certificate"));
}

/* Of each socket, and of one that the service manager passes and no block names. */
static bool
load_all(struct loading *k)
{
	const char *name;
	size_t i;

	for (i = 0; (name = config_listen(k->config, i)) != NULL; i++)
		if (!of_socket(k, name))
			return (false);
	return (!config_global(k->config)->ssl_engine || config_each(k->config, of_block, k));
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
	pem_fetch(arg, c->ssl_ca_file);
	pem_fetch(arg, c->ssl_dh_file);
	return (true);
}

void
certificates_fetch(const struct config *config)
{
	struct fetching f = { config_sources(config), g_hash_table_new(g_str_hash, g_str_equal) };

	config_each(config, fetch, &f);
	g_hash_table_destroy(f.asked);
}
