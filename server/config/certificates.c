/* server/config/certificates.c -- see certificates.h */
#include "server/config/certificates_impl.h"

#include <stdio.h>
#include <string.h>

#include "io/tls/keys.h"
#include "io/tls/tls.h"
#include "server/config/ticket_file.h"
#include "server/config/verifiers.h"

struct loading {
	struct certificates *p;
	struct conf_refusal at;
	struct sources *sources;
};

static const char *
word(const char *s)
{
	return (s != NULL ? s : "");
}

enum { OF_CA = 5, OF_STAPLE, STRINGS };

/* Lends strings of the configuration: a handshake finds its certificate without a malloc. */
struct certificate_name {
	const char *v[STRINGS];
	bool servers_order;
	const void *commands; /* blocks that do not set a map share its rows */
};

static struct certificate_name
name_of(const struct conf *c)
{
	const struct conf_map *cmds = &c->ssl_conf_cmd;
	struct certificate_name n = {
		.v = { c->ssl_pemfile, word(c->ssl_privkey), word(c->ssl_ciphers),
		    word(c->ssl_curves), word(c->ssl_dh_file), [OF_CA] = "", [OF_STAPLE] = "" },
		.servers_order = c->ssl_servers_order,
		.commands = cmds->n != 0 ? cmds->v : NULL,
	};

	return (n);
}

/* ... with the files that complete it */
static struct certificate_name
whole_name_of(const struct conf *c)
{
	struct certificate_name n = name_of(c);

	n.v[OF_CA] = word(c->ssl_ca_file);
	n.v[OF_STAPLE] = word(c->ssl_stapling_file);
	return (n);
}

static guint
name_hash(gconstpointer name)
{
	const struct certificate_name *n = name;
	guint hash = g_direct_hash(n->commands) + n->servers_order;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(n->v); i++)
		hash = 31 * hash + g_str_hash(n->v[i]);
	return (hash);
}

static gboolean
name_same(gconstpointer a, gconstpointer b)
{
	const struct certificate_name *n = a, *m = b;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(n->v); i++)
		if (strcmp(n->v[i], m->v[i]) != 0)
			return (false);
	return (n->servers_order == m->servers_order && n->commands == m->commands);
}

static struct certificate *
look_up(GHashTable *by_name, struct certificate_name name)
{
	return (g_hash_table_lookup(by_name, &name));
}

static void
insert(GHashTable *by_name, struct certificate_name name, struct certificate *one)
{
	g_hash_table_insert(by_name, g_memdup2(&name, sizeof(name)), one);
}

static struct certificate *
find_whole(const struct certificates *p, const struct conf *c)
{
	return (look_up(p->made, whole_name_of(c)));
}

/* Of two blocks that hold for one host, one may set the certificate and the other one ssl.ca-file,
 * so that no block has both: then the first with this certificate is taken. */
struct certificate *
certificate_find(const struct certificates *p, const struct conf *c)
{
	struct certificate *one;

	if (!conf_is_set(c->ssl_pemfile))
		return (NULL);
	one = find_whole(p, c);
	return (one != NULL ? one : look_up(p->first, name_of(c)));
}

/* ---- its files */

enum { CHAIN, KEY, CA, DH, STAPLE };

/* An OCSP response may be missing: a client can do without. */
static struct file_set
files_of(const struct conf *c)
{
	struct file_set s = { 0 };

	file_set_add(&s, "ssl.pemfile", c->ssl_pemfile, false);
	file_set_add(&s, "ssl.privkey", c->ssl_privkey, false);
	file_set_add(&s, "ssl.ca-file", c->ssl_ca_file, false);
	file_set_add(&s, "ssl.dh-file", c->ssl_dh_file, false);
	file_set_add(&s, "ssl.stapling-file", c->ssl_stapling_file, true);
	return (s);
}

struct file_set
certificate_files(const struct conf *c, struct sources *sources)
{
	struct file_set s = files_of(c);

	file_set_read(&s, sources);
	return (s);
}

/* ---- one certificate */

static bool
refuse_fault(const struct conf_refusal *at, const struct tls_fault *fault)
{
	const struct conf *c = at->c;
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
		return (config_refuse(at, "ssl.openssl.ssl-conf-cmd", fault->why));
	if (fault->of == TLS_OF_KEY && !conf_is_set(c->ssl_privkey))
		return (config_refuse_value(at, "ssl.pemfile", c->ssl_pemfile, fault->why));
	return (config_refuse_value(at, settings[fault->of].directive, settings[fault->of].value,
	    fault->why));
}

static struct io_secure *
make(const struct conf_refusal *at, const struct file_set *files)
{
	const struct conf *c = at->c;
	const struct conf_map *rows = &c->ssl_conf_cmd;
	struct tls_command *cmds = g_new0(struct tls_command, rows->n + 1);
	const struct tls_settings set = {
		.chain = file_set_text(files, CHAIN),
		.key = file_set_text(files, KEY),
		.ca = file_set_text(files, CA),
		.dh = file_set_text(files, DH),
		.staple = file_set_text(files, STAPLE),
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
		(void)refuse_fault(at, &fault);
	return (s);
}

struct io_secure *
certificate_make(const struct conf_refusal *at, const struct file_set *files)
{
	return (file_set_is_there(files, at) ? make(at, files) : NULL);
}

void
certificate_note_staple(struct certificate *one, const struct io_secure *s,
    const struct file_set *files)
{
	int err = files->v[STAPLE].is.err;

	g_free(one->unstapled);
	one->unstapled = g_strdup(err != 0 ? strerror(-err) : tls_secure_unstapled(s));
}

static bool
load(struct loading *k)
{
	struct file_set files = certificate_files(k->at.c, k->sources);
	struct io_secure *s = certificate_make(&k->at, &files);
	struct certificate *one;

	if (s != NULL) {
		one = g_new0(struct certificate, 1);
		one->secure = s;
		made_of_note(&one->of, &files, true);
		certificate_note_staple(one, s, &files);
		insert(k->p->made, whole_name_of(k->at.c), one);
		if (look_up(k->p->first, name_of(k->at.c)) == NULL)
			insert(k->p->first, name_of(k->at.c), one);
	}
	file_set_free(&files);
	return (s != NULL);
}

/* ---- all of them */

static bool
of_block(const struct conf *c, void *arg)
{
	struct loading *k = arg;

	k->at.c = c;
	return (!conf_is_set(c->ssl_pemfile) || find_whole(k->p, c) != NULL || load(k));
}

static bool
of_socket(const char *socket, const struct conf *c, void *arg)
{
	struct loading *k = arg;

	if (socket == NULL || conf_is_set(c->ssl_pemfile))
		return (config_each_at(k->at.config, socket, of_block, k));
	k->at.c = c;
	return (config_refuse(&k->at, "ssl.engine",
	    "ssl.pemfile is not set; write the file with the certificate"));
}

static void
certificate_free(void *certificate)
{
	struct certificate *one = certificate;

	tls_secure_free(one->secure);
	made_of_free(&one->of);
	g_free(one->unstapled);
	g_free(one);
}

struct certificates *
certificates_new(const struct config *config, char *err, size_t errsize)
{
	struct certificates *p = g_new0(struct certificates, 1);
	struct loading k = { .p = p,
		.at = { .config = config, .err = err, .errsize = errsize },
		.sources = config_sources(config) };

	p->made = g_hash_table_new_full(name_hash, name_same, g_free, certificate_free);
	p->first = g_hash_table_new_full(name_hash, name_same, g_free, NULL);
	if (config_each_secure(config, of_socket, &k))
		return (p);
	certificates_free(p);
	return (NULL);
}

void
certificates_free(struct certificates *p)
{
	if (p == NULL)
		return;
	g_hash_table_destroy(p->first);
	g_hash_table_destroy(p->made);
	g_free(p);
}

const struct io_secure *
certificates_get(const struct certificates *p, const struct conf *c)
{
	const struct certificate *one = certificate_find(p, c);

	return (one != NULL ? one->secure : NULL);
}

/* ---- what a record has */

struct naming {
	GHashTable *named;
	void (*fn)(const char *file, void *arg);
	void *arg;
};

/* Once: thousands of blocks may be within one that sets it. */
static void
name_file(const char *file, void *arg)
{
	const struct naming *n = arg;

	if (g_hash_table_add(n->named, (char *)(uintptr_t)file))
		n->fn(file, n->arg);
}

static bool
name_files(const struct conf *c, void *arg)
{
	const struct file_set files = files_of(c);
	unsigned i;

	for (i = 0; i < files.n; i++)
		if (files.v[i].name != NULL)
			name_file(files.v[i].name, arg);
	verifiers_add_files(c, name_file, arg);
	ticket_file_add(c, name_file, arg);
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

/* The ciphers of the default need no decryption. */
static bool
names_ciphers(const struct conf *c, void *use)
{
	if (c->ssl_ciphers != NULL || c->ssl_conf_cmd.n != 0)
		*(uint8_t *)use = TLS_KEY_SIGNS_AND_DECRYPTS;
	return (true);
}

uint8_t
certificates_keys(const struct config *config)
{
	uint8_t use = TLS_KEY_SIGNS;

	if (!config_global(config)->ssl_key_process)
		return (0);
	config_each(config, names_ciphers, &use);
	return (use);
}

/* ---- the name of the list */

static void
list_file(const char *file, void *files)
{
	g_ptr_array_add(files, (char *)(uintptr_t)file);
}

static gint
by_name(gconstpointer a, gconstpointer b)
{
	return (strcmp(*(const char *const *)a, *(const char *const *)b));
}

uint64_t
certificates_list(const struct config *config)
{
	GPtrArray *files = g_ptr_array_new();
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	const uint8_t keys = certificates_keys(config);
	guint8 digest[32];
	gsize n = sizeof(digest);
	uint64_t list;
	guint i;

	certificates_files(config, list_file, files);
	g_ptr_array_sort(files, by_name);
	g_checksum_update(sum, &keys, sizeof(keys));
	for (i = 0; i < files->len; i++) /* with its NUL */
		g_checksum_update(sum, files->pdata[i], (gssize)strlen(files->pdata[i]) + 1);
	g_checksum_get_digest(sum, digest, &n);
	memcpy(&list, digest, sizeof(list));
	g_checksum_free(sum);
	g_ptr_array_free(files, true);
	return (list);
}
