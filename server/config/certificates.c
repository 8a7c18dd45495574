/* server/config/certificates.c -- see certificates.h */
#include "server/config/certificates.h"

#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "io/tls/inspect.h"
#include "io/tls/tls.h"
#include "server/config/config.h"
#include "server/config/record.h"
#include "wire/http1/host.h"

struct certificate {
	struct io_secure *secure;
	char *used, *refused; /* digests of its files; refused NULL: they are in use */
	char *unstapled;      /* why its OCSP response is not sent; NULL: it is, or there is none */
	unsigned turn;        /* of the renewal that has looked at it */
};

struct certificates {
	GHashTable *made; /* by name_of() -> struct certificate */
	unsigned turn;    /* renewals so far */
};

struct loading {
	struct certificates *p;
	const struct config *config;
	const struct conf *c; /* the values that are looked at now */
	struct sources *sources;
	char *err;
	size_t errsize;
	certificates_news *news; /* NULL: they are loaded for the first time */
	void *arg;
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

/* Blocks that do not set a map share its rows.  ssl.ca-file and ssl.stapling-file are not in
 * the name: two blocks that hold for one host may set a certificate and others that complete it. */
static char *
name_of(const struct conf *c)
{
	const struct conf_map *cmds = &c->ssl_conf_cmd;

	return (g_strdup_printf("%s\n%s\n%s\n%s\n%s\n%d\n%p", c->ssl_pemfile, word(c->ssl_privkey),
	    word(c->ssl_ciphers), word(c->ssl_curves), word(c->ssl_dh_file), c->ssl_servers_order,
	    cmds->n != 0 ? (void *)cmds->v : NULL));
}

static struct certificate *
find(const struct certificates *p, const struct conf *c)
{
	struct certificate *one;
	char *name;

	if (!is_set(c->ssl_pemfile))
		return (NULL);
	name = name_of(c);
	one = g_hash_table_lookup(p->made, name);
	g_free(name);
	return (one);
}

/* ---- its files */

enum { CHAIN, KEY, CA, DH, STAPLE, FILES };

static const struct {
	const char *directive;
	size_t value;
} files[FILES] = {
	[CHAIN] = { "ssl.pemfile", offsetof(struct conf, ssl_pemfile) },
	[KEY] = { "ssl.privkey", offsetof(struct conf, ssl_privkey) },
	[CA] = { "ssl.ca-file", offsetof(struct conf, ssl_ca_file) },
	[DH] = { "ssl.dh-file", offsetof(struct conf, ssl_dh_file) },
	[STAPLE] = { "ssl.stapling-file", offsetof(struct conf, ssl_stapling_file) },
};

static const char *
file_of(const struct conf *c, unsigned nr)
{
	return (*(const char *const *)(const void *)((const char *)c + files[nr].value));
}

/* The files that settings name, as they are in the record. */
struct pems {
	struct source v[FILES];
};

static void
pems_get(struct loading *k, struct pems *p)
{
	unsigned i;

	for (i = 0; i < FILES; i++)
		p->v[i] = is_set(file_of(k->c, i))
			      ? sources_get(k->sources, SOURCE_FILE, file_of(k->c, i), NULL)
			      : (struct source){ 0 };
}

static void
pems_free(struct pems *p)
{
	unsigned i;

	for (i = 0; i < FILES; i++)
		source_free(&p->v[i]);
}

/* An OCSP response may be missing: a client can do without. */
static bool
pems_are_there(struct loading *k, const struct pems *p)
{
	unsigned i;

	for (i = 0; i < FILES; i++)
		if (p->v[i].err != 0 && i != STAPLE)
			return (refuse_value(k, files[i].directive, file_of(k->c, i),
			    strerror(-p->v[i].err)));
	return (true);
}

/* What they have, or why they cannot be read.  NULL: the record does not have one of them. */
static char *
pems_digest(const struct pems *p)
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	const struct source *is;
	char *digest = NULL;

	for (is = p->v; is < p->v + FILES && is->err != -ENODATA; is++) {
		g_checksum_update(sum, (const guchar *)&is->err, sizeof(is->err));
		g_checksum_update(sum, (const guchar *)&is->bytes.n, sizeof(is->bytes.n));
		if (is->bytes.n != 0)
			g_checksum_update(sum, (const guchar *)is->bytes.p, (gssize)is->bytes.n);
	}
	if (is == p->v + FILES)
		digest = g_strdup(g_checksum_get_string(sum));
	g_checksum_free(sum);
	return (digest);
}

/* An empty file is one, too. */
static struct text
pem_text(const struct loading *k, const struct pems *p, unsigned nr)
{
	const struct source *s = &p->v[nr];

	if (!is_set(file_of(k->c, nr)) || s->err != 0)
		return (TEXT_NONE);
	return ((struct text){ s->bytes.p != NULL ? s->bytes.p : "", s->bytes.n });
}

/* ---- one certificate */

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

/* NULL: refused. */
static struct io_secure *
make(struct loading *k, const struct pems *p)
{
	const struct conf *c = k->c;
	const struct conf_map *rows = &c->ssl_conf_cmd;
	struct tls_command *cmds = g_new0(struct tls_command, rows->n + 1);
	const struct tls_settings set = {
		.chain = pem_text(k, p, CHAIN),
		.key = pem_text(k, p, KEY),
		.ca = pem_text(k, p, CA),
		.dh = pem_text(k, p, DH),
		.staple = pem_text(k, p, STAPLE),
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
		(void)refuse_fault(k, &fault);
	return (s);
}

static void
note_staple(struct certificate *one, const struct io_secure *s, const struct pems *p)
{
	int err = p->v[STAPLE].err;

	g_free(one->unstapled);
	one->unstapled = g_strdup(err != 0 ? strerror(-err) : tls_secure_unstapled(s));
}

static bool
load(struct loading *k)
{
	struct certificate *one;
	struct io_secure *s;
	struct pems p;

	pems_get(k, &p);
	s = pems_are_there(k, &p) ? make(k, &p) : NULL;
	if (s != NULL) {
		one = g_new0(struct certificate, 1);
		one->secure = s;
		one->used = pems_digest(&p);
		note_staple(one, s, &p);
		g_hash_table_insert(k->p->made, name_of(k->c), one);
	}
	pems_free(&p);
	return (s != NULL);
}

/* Takes the digest. */
static void
set(char **to, char *digest)
{
	g_free(*to);
	*to = digest;
}

static void
tell_staple(struct loading *k, const struct certificate *one)
{
	if (one->unstapled != NULL)
		(void)refuse_value(k, "ssl.stapling-file", k->c->ssl_stapling_file, one->unstapled);
	k->news(k->arg, k->c->ssl_pemfile, NULL, one->unstapled != NULL ? k->err : NULL);
}

/* Takes the digest. */
static void
renew_from(struct loading *k, struct certificate *one, const struct pems *p, char *now)
{
	struct io_secure *s = pems_are_there(k, p) ? make(k, p) : NULL;

	set(&one->refused, NULL);
	set(s != NULL ? &one->used : &one->refused, now);
	if (s == NULL) {
		k->news(k->arg, k->c->ssl_pemfile, k->err, NULL);
		return;
	}
	note_staple(one, s, p);
	tls_secure_renew(one->secure, s);
	tell_staple(k, one);
}

static void
renew(struct loading *k, struct certificate *one)
{
	struct pems p;
	char *now;

	if (one->turn == k->p->turn)
		return;
	one->turn = k->p->turn;
	pems_get(k, &p);
	now = pems_digest(&p);
	if (now != NULL && g_strcmp0(now, one->used) == 0)
		set(&one->refused, NULL); /* the old files are back */
	else if (now != NULL && g_strcmp0(now, one->refused) != 0)
		renew_from(k, one, &p, g_strdup(now));
	g_free(now);
	pems_free(&p);
}

static bool
visit(struct loading *k)
{
	struct certificate *one = find(k->p, k->c);

	if (k->news == NULL)
		return (one != NULL || load(k));
	if (one != NULL)
		renew(k, one);
	return (true);
}

/* ---- all of them */

static bool
of_block(const struct conf *c, void *arg)
{
	struct loading *k = arg;

	k->c = c;
	return (!is_set(c->ssl_pemfile) || visit(k));
}

static bool
has_none(struct loading *k, const struct conf *c)
{
	k->c = c;
	return (
	    refuse(k, "ssl.engine", "ssl.pemfile is not set; write the file with the certificate"));
}

static bool
of_socket(struct loading *k, const char *socket)
{
	struct conf c;

	config_socket(k->config, socket, &c);
	if (!c.ssl_engine)
		return (true);
	return (is_set(c.ssl_pemfile) ? config_each_at(k->config, socket, of_block, k)
				      : has_none(k, &c));
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
certificate_free(void *certificate)
{
	struct certificate *one = certificate;

	tls_secure_free(one->secure);
	g_free(one->used);
	g_free(one->refused);
	g_free(one->unstapled);
	g_free(one);
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

	p->made = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, certificate_free);
	if (load_all(&k))
		return (p);
	certificates_free(p);
	return (NULL);
}

void
certificates_renew(struct certificates *p, const struct config *config, struct sources *sources,
    certificates_news *news, void *arg)
{
	char err[512];
	struct loading k = { .p = p,
		.config = config,
		.sources = sources,
		.err = err,
		.errsize = sizeof(err),
		.news = news,
		.arg = arg };

	p->turn++;
	(void)load_all(&k);
}

struct certificates_state
certificates_state(const struct certificates *p)
{
	struct certificates_state now = { 0 };
	struct certificate *one;
	GHashTableIter at;
	uint64_t ends;

	g_hash_table_iter_init(&at, p->made);
	while (g_hash_table_iter_next(&at, NULL, (gpointer *)&one)) {
		now.n++;
		now.refused += one->refused != NULL;
		ends = tls_secure_ends_s(one->secure);
		if (now.ends_s == 0 || ends < now.ends_s)
			now.ends_s = ends;
	}
	return (now);
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
	const struct certificate *one = find(p, c);

	return (one != NULL ? one->secure : NULL);
}

/* ---- warnings */

#define WARNINGS_MAX 20u /* as of a configuration */

struct warning {
	const struct certificates *p;
	const struct config *config;
	const struct conf *c;
	GHashTable *seen; /* struct io_secure */
	GHashTable *told; /* lines */
	struct buf *out;
	int64_t now_s;
};

static void
tell_of(struct warning *k, const char *directive, const char *value, const char *what)
{
	struct buf where;
	char *line;

	buf_init(&where, 4096);
	config_where(k->config, k->c, directive, &where);
	line = g_strdup_printf("%.*s\"%s\": %s", (int)where.n, where.n != 0 ? where.p : "", value,
	    what);
	buf_free(&where);
	if (g_hash_table_add(k->told, line) && g_hash_table_size(k->told) <= WARNINGS_MAX)
		buf_printf(k->out, "%s\n", line);
}

static void
tell(void *arg, const char *what)
{
	struct warning *k = arg;

	tell_of(k, "ssl.pemfile", k->c->ssl_pemfile, what);
}

static void
warn_of_staple(struct warning *k)
{
	const struct certificate *one = find(k->p, k->c);
	char what[256];

	if (one->unstapled == NULL || !is_set(k->c->ssl_stapling_file))
		return;
	snprintf(what, sizeof(what), "clients do not get it: %s", one->unstapled);
	tell_of(k, "ssl.stapling-file", k->c->ssl_stapling_file, what);
}

static bool
warn_of_block(const struct conf *c, void *arg)
{
	struct warning *k = arg;
	const struct io_secure *s = certificates_get(k->p, c);
	char store[HTTP_HOST_MAX];
	struct text host;

	k->c = c;
	if (s == NULL)
		return (true);
	if (g_hash_table_add(k->seen, (void *)(uintptr_t)s)) {
		tls_inspect(s, k->now_s, tell, k);
		warn_of_staple(k);
	}
	host = config_host_of(k->config, c, "ssl.pemfile", store);
	if (host.n != 0)
		tls_inspect_host(s, host, "$HTTP[\"host\"]", tell, k);
	return (true);
}

static void
warn_of_socket(struct warning *k, const char *socket)
{
	struct conf c;

	config_socket(k->config, socket, &c);
	if (!c.ssl_engine)
		return;
	config_each_at(k->config, socket, warn_of_block, k);
	k->c = &c;
	if (is_set(c.server_name))
		tls_inspect_host(certificates_get(k->p, &c), text_of(c.server_name), "server.name",
		    tell, k);
	k->c = NULL;
}

void
certificates_warn(const struct certificates *p, const struct config *config, struct buf *out)
{
	struct warning k = { .p = p,
		.config = config,
		.out = out,
		.seen = g_hash_table_new(NULL, NULL),
		.told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
		.now_s = (int64_t)(clock_wall_ns() / NS_PER_S) };
	const char *name;
	size_t i;

	for (i = 0; (name = config_listen(config, i)) != NULL; i++)
		warn_of_socket(&k, name);
	g_hash_table_destroy(k.seen);
	g_hash_table_destroy(k.told);
}

/* ---- what a record has */

struct naming {
	GHashTable *named;
	void (*fn)(const char *file, void *arg);
	void *arg;
};

/* Once: thousands of blocks may be within one that sets it. */
static bool
name_files(const struct conf *c, void *arg)
{
	const struct naming *n = arg;
	unsigned i;

	for (i = 0; i < FILES; i++)
		if (is_set(file_of(c, i)) &&
		    g_hash_table_add(n->named, (char *)(uintptr_t)file_of(c, i)))
			n->fn(file_of(c, i), n->arg);
	return (true);
}

void
certificates_files(const struct config *config, void (*fn)(const char *file, void *arg), void *arg)
{
	struct naming n = { g_hash_table_new(g_str_hash, g_str_equal), fn, arg };

	config_each(config, name_files, &n);
	g_hash_table_destroy(n.named);
}

static void
fetch(const char *file, void *sources)
{
	struct source is = sources_get(sources, SOURCE_FILE, file, NULL);

	source_free(&is);
}

void
certificates_fetch(const struct config *config)
{
	certificates_files(config, fetch, config_sources(config));
}
