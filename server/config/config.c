/* server/config/config.c -- load, check, free; the addresses to listen on. */
#include <stdlib.h>
#include "base/address.h"
#include "server/config/impl.h"
#include "server/config/check/limits.h"
#include "wire/http1/host.h"

struct config *
cfg_new(struct buf *err, struct buf *warn)
{
	struct config *cfg = g_new0(struct config, 1);
	struct cfg_cond none = { .field = NULL };

	/* Each value is checked against CFG_MEMORY_MAX before it is made, so this limit is never
	 * reached. */
	arena_init(&cfg->mem, NULL, 0, 4ul * CFG_MEMORY_MAX);
	cfg->blocks = g_ptr_array_new();
	cfg->headers = g_ptr_array_new();
	cfg->block_names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	cfg->listens = g_ptr_array_new_with_free_func(g_free);
	cfg->modules = g_array_new(FALSE, FALSE, sizeof(struct cfg_entry));
	cfg->err = err;
	cfg->warn = warn;
	cfg_block_open(cfg, (struct cfg_pos){ "", 1, 1 }, NULL, NULL, &none);
	return (cfg);
}

void
config_free(struct config *cfg)
{
	struct cfg_block *b;
	guint i;

	if (cfg == NULL)
		return;
	for (i = 0; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		match_free(b->cond.re);
		g_ptr_array_free(b->entries, TRUE);
		g_hash_table_destroy(b->by_key);
		g_array_free(b->settings, TRUE);
	}
	g_ptr_array_free(cfg->blocks, TRUE);
	g_hash_table_destroy(cfg->block_names);
	g_ptr_array_free(cfg->headers, TRUE);
	g_ptr_array_free(cfg->listens, TRUE);
	g_array_free(cfg->modules, TRUE);
	g_free(cfg->dir);
	sources_free(cfg->sources);
	arena_reset(&cfg->mem);
	g_free(cfg);
}

const struct conf *
config_global(const struct config *cfg)
{
	return (&cfg->global);
}

struct sources *
config_sources(const struct config *cfg)
{
	return (cfg->sources);
}

void
config_forget_sources(struct config *cfg)
{
	sources_free(cfg->sources);
	cfg->sources = NULL;
}

size_t
config_memory(const struct config *cfg)
{
	return (cfg->mem.used);
}

bool
config_uses_physical(const struct config *cfg)
{
	return (cfg->uses_physical);
}

bool
config_has_conditions(const struct config *cfg)
{
	return (cfg->blocks->len > 1);
}

/* A value that no client can send is not a host. */
void
config_hosts(const struct config *cfg, void (*each)(void *arg, struct text host), void *arg)
{
	char store[HTTP_HOST_MAX];
	guint i;

	for (i = 1; i < cfg->blocks->len; i++) {
		const struct cfg_block *b = g_ptr_array_index(cfg->blocks, i);
		struct text host;

		if (b->cond.op != TOK_EQ || !cfg_field_is_host(b->cond.field))
			continue;
		host = http1_host(b->cond.value, store);
		if (host.p != NULL)
			each(arg, host);
	}
}

struct text
config_host_of(const struct config *cfg, const struct conf *c, const char *name, char *store)
{
	const struct cfg_block *b = g_ptr_array_index(cfg->blocks, c->values_of);

	while (b != NULL && cfg_entry_find(b, text_of(name)) == NULL)
		b = b->parent;
	for (; b != NULL && b->ndx != 0; b = b->parent)
		if (b->cond.op == TOK_EQ && cfg_field_is_host(b->cond.field))
			return (http1_host(b->cond.value, store));
	return (TEXT_NONE);
}

/* ---------------------------------------------------------------- addresses to listen on */

const char *
config_listen(const struct config *cfg, size_t i)
{
	return (i < cfg->listens->len ? g_ptr_array_index(cfg->listens, i) : NULL);
}

/* NULL: the address is usable.  A space would break a log line. */
static const char *
fault_of_listen(const char *addr)
{
	struct address_parts a;
	const char *fault;

	if (address_read_port(text_of(addr), &a, &fault) == 0 && strchr(addr, ' ') != NULL)
		return ("expected a path without spaces");
	return (fault);
}

/* Takes addr. */
static bool
add_listen(struct config *cfg, struct cfg_pos pos, char *addr)
{
	const char *fault = fault_of_listen(addr);
	bool ok = fault == NULL;
	guint i;

	if (!ok)
		cfg_error(cfg, pos,
		    "cannot listen on \"%.80s\": %s; expected an address like \":80\", "
		    "\"127.0.0.1:8080\", \"[::]:80\" or \"/run/x.sock\"",
		    addr, fault);
	for (i = 0; ok && i < cfg->listens->len; i++)
		ok = !address_same(text_of(g_ptr_array_index(cfg->listens, i)), text_of(addr));
	if (ok && cfg->listens->len == CFG_LISTENS_MAX)
		ok = cfg_error(cfg, pos,
		    "more than %u addresses to listen on; one without a host, like \":80\", stands "
		    "for all of a port",
		    CFG_LISTENS_MAX);
	if (ok)
		g_ptr_array_add(cfg->listens, addr);
	else
		g_free(addr);
	return (cfg->errors == 0);
}

static char *
default_address(const struct conf *c)
{
	const char *bind = c->bind != NULL ? c->bind : c->use_ipv6 ? "[::]" : "";
	bool bare_v6 = bind[0] != '[' && strchr(bind, ':') != NULL;

	if (address_path(text_of(bind)).p != NULL)
		return (g_strdup(bind));
	return (g_strdup_printf("%s%s%s:%" G_GUINT64_FORMAT, bare_v6 ? "[" : "", bind,
	    bare_v6 ? "]" : "", c->port));
}

/* An address without a port takes server.port. */
static char *
block_address(const struct config *cfg, struct text t)
{
	struct conf c = cfg->global;
	struct text host, port;

	if (t.n == 0 || address_path(t).p != NULL || !address_cut(t, &host, &port) ||
	    port.p != NULL)
		return (g_strdup(t.p));
	c.bind = t.p;
	return (default_address(&c));
}

/* The condition compares the whole address too, or it would never be true. */
static bool
add_block_listen(struct config *cfg, struct cfg_block *b)
{
	char *addr;

	if (b->cond.op != TOK_EQ && b->cond.op != TOK_NE)
		return (true);
	addr = block_address(cfg, b->cond.value);
	b->cond.value = cfg_value_str(cfg, text_of(addr))->str;
	if (b->cond.op == TOK_EQ)
		return (add_listen(cfg, b->pos, addr));
	g_free(addr);
	return (true);
}

/* lighttpd 1.5 opens port 80 even for a file that names other sockets only.  A user other than root
 * could not start with such a file. */
static bool
find_listens(struct config *cfg)
{
	const struct cfg_entry *bind = cfg_entry_find(cfg_block_root(cfg), TEXT("server.bind"));
	const struct cfg_entry *port = cfg_entry_find(cfg_block_root(cfg), TEXT("server.port"));
	const struct cfg_entry *e = bind != NULL ? bind : port;
	struct cfg_block *b;
	bool ok = true;
	guint i;

	if (e != NULL)
		ok = add_listen(cfg, e->value_pos, default_address(&cfg->global));
	for (i = 1; ok && i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		if (cfg_field_is_socket(b->cond.field))
			ok = add_block_listen(cfg, b);
	}
	if (ok && cfg->listens->len == 0)
		ok = add_listen(cfg, (struct cfg_pos){ "directives.def", 1, 1 },
		    default_address(&cfg->global));
	return (ok);
}

static bool
is_block_of(const struct cfg_block *b, struct text socket)
{
	return (cfg_field_is_socket(b->cond.field) && b->cond.op == TOK_EQ &&
		text_eq(b->cond.value, socket));
}

unsigned
cfg_socket_block(const struct config *cfg, struct text socket)
{
	guint i;

	for (i = 1; i < cfg->blocks->len; i++)
		if (is_block_of(g_ptr_array_index(cfg->blocks, i), socket))
			return (i);
	return (0);
}

/* As in lighttpd: outside of all blocks it is for the address of server.port and server.bind, so
 * that a file that enables it there may have a block for port 80. */
bool
cfg_socket_has_engine(const struct config *cfg, struct text socket)
{
	const struct cfg_block *b;
	guint i;

	if (cfg_socket_block(cfg, socket) == 0)
		return (true);
	for (i = 1; i < cfg->blocks->len; i++) {
		b = g_ptr_array_index(cfg->blocks, i);
		if ((is_block_of(b, socket) || b->cond.op != TOK_EQ) &&
		    cfg_entry_find(b, TEXT("ssl.engine")) != NULL)
			return (true);
	}
	return (false);
}

/* ---------------------------------------------------------------- loading */

/* After an ignored mistake a socket would be open to every user, or to none. */
static bool
check_perms(struct config *cfg)
{
	const struct cfg_entry *e =
	    cfg_entry_find(cfg_block_root(cfg), TEXT("server.socket-perms"));
	const char *s = cfg->global.socket_perms;

	if (e == NULL || s == NULL || s[0] == '\0')
		return (true);
	if (strspn(s, "01234567") == strlen(s) && strtoul(s, NULL, 8) <= 0777)
		return (true);
	return (cfg_error(cfg, e->value_pos,
	    "server.socket-perms: expected a mode in octal such as \"0660\", got \"%.40s\"", s));
}

static bool
understand(struct config *cfg, struct cfg_source *src)
{
	if (!cfg_parse(cfg, src) || !cfg_translate(cfg))
		return (false);
	cfg_table_defaults(cfg, &cfg->global);
	if (!cfg_table_check(cfg))
		return (false);
	cfg_table_apply(cfg_block_root(cfg), &cfg->global);
	cfg->global.condition_endings = cfg_condition_endings(cfg);
	if (cfg->global.document_root == NULL)
		return (cfg_error(cfg, (struct cfg_pos){ src->name, 1, 1 },
		    "server.document-root is not set; add server.document-root = \"/path\""));
	return (
	    cfg_proxy_check(cfg) && check_perms(cfg) && find_listens(cfg) && cfg_limits_check(cfg));
}

static struct config *
finish(struct config *cfg, bool ok)
{
	cfg->err = cfg->warn = NULL; /* they belong to the caller */
	if (ok)
		return (cfg);
	config_free(cfg);
	return (NULL);
}

struct config *
config_load(const char *file, struct sources *sources, struct buf *err, struct buf *warn)
{
	struct config *cfg = cfg_new(err, warn);
	struct cfg_source src;
	bool ok;

	cfg->sources = sources;
	cfg->dir = g_path_get_dirname(file);
	ok = cfg_source_file(cfg, (struct cfg_pos){ NULL, 1, 1 }, file, NULL, &src) &&
	     understand(cfg, &src);
	/* the record then ends with the configuration, without the answers for resources_new() */
	if (ok && sources_refused(sources))
		ok = cfg_error(cfg, (struct cfg_pos){ src.name, 1, 1 },
		    "the helper process could not read it; give it more memory");
	cfg_source_free(&src);
	return (finish(cfg, ok));
}

struct config *
config_load_text(const char *name, struct text text, bool sandboxed, struct buf *err,
    struct buf *warn)
{
	struct config *cfg = cfg_new(err, warn);
	struct cfg_source src = { .name = name, .bytes = text };

	cfg->sandboxed = sandboxed;
	return (finish(cfg, understand(cfg, &src)));
}
