/* server/config/certificates_warn.c -- what a client will refuse, though the server takes it */
#include <stdio.h>

#include "base/clock.h"
#include "io/tls/inspect.h"
#include "server/config/certificates_impl.h"
#include "wire/http1/host.h"

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
	const struct certificate *one = certificate_find(k->p, k->c);
	char what[256];

	if (one->unstapled == NULL || !conf_is_set(k->c->ssl_stapling_file))
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

static bool
warn_of_socket(const char *socket, const struct conf *c, void *arg)
{
	struct warning *k = arg;

	if (socket == NULL)
		return (true);
	config_each_at(k->config, socket, warn_of_block, k);
	k->c = c;
	if (conf_is_set(c->server_name))
		tls_inspect_host(certificates_get(k->p, c), text_of(c->server_name), "server.name",
		    tell, k);
	return (true);
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

	(void)config_each_secure(config, warn_of_socket, &k);
	g_hash_table_destroy(k.seen);
	g_hash_table_destroy(k.told);
}
