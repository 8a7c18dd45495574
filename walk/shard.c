#include "walk/shard.h"

#include <glib.h>
#include <string.h>

#include "base/rendezvous.h"
#include "walk/ring.h"
#include "wire/urlpath.h"

struct node {
	struct text name;
	unsigned weight;
};

struct walk_shard {
	const struct walk_shard_conf *conf;
	size_t mine; /* index of the node */
	size_t n;
	struct node *node;
	struct ring *ring; /* NULL: carp */
};

/* ---------------------------------------------------------------- settings */

static bool
number_in(struct text t, uint64_t max, uint64_t *n)
{
	return (text_u64(t, n) == 0 && *n >= 1 && *n <= max);
}

/* "K/N" */
static bool
read_share(struct walk_shard *s, const char *text)
{
	struct text rest = text_of(text), k = TEXT_NONE;
	uint64_t mine, n;

	if (!text_next(&rest, '/', &k) || !number_in(rest, SHARD_NODES_MAX, &n) ||
	    !number_in(k, n, &mine))
		return (false);
	s->mine = (size_t)mine - 1;
	s->n = (size_t)n;
	return (true);
}

static bool
read_node(const struct walk_shard_conf *conf, const char *text, struct node *node)
{
	const char *equals = strrchr(text, '=');
	uint64_t weight = conf->weight;

	node->name = text_of(text);
	if (equals != NULL) {
		node->name.n = (size_t)(equals - text);
		if (!number_in(text_of(equals + 1), RING_WEIGHT_MAX, &weight))
			return (false);
	}
	node->weight = (unsigned)weight;
	return (node->name.n > 0);
}

static char *
read_nodes(struct walk_shard *s)
{
	const char *const *text = s->conf->nodes;
	size_t n = 0;

	for (; text != NULL && *text != NULL; text++, n++)
		if (n < s->n && !read_node(s->conf, *text, &s->node[n]))
			return (g_strdup_printf("--nodes: expected NAME or NAME=WEIGHT with a "
						"weight of 1 to %u, "
						"got \"%s\"",
			    RING_WEIGHT_MAX, *text));
	if (n != s->n)
		return (g_strdup_printf("--nodes has %zu nodes, --shard says %zu", n, s->n));
	return (NULL);
}

static char *
make_ring(struct walk_shard *s)
{
	g_autofree struct ring_server *server = g_new(struct ring_server, s->n);
	uint64_t id;

	for (size_t i = 0; i < s->n; i++) {
		server[i] = (struct ring_server){ (unsigned)i + 1, s->conf->weight };
		if (s->conf->nodes == NULL)
			continue;
		if (!number_in(s->node[i].name, RING_ID_MAX, &id))
			return (g_strdup_printf("--nodes: expected the id of a server of HAProxy, "
						"a number, got \"%s\"",
			    s->conf->nodes[i]));
		server[i] = (struct ring_server){ (unsigned)id, s->node[i].weight };
	}
	s->ring = ring_new(server, s->n);
	return (NULL);
}

struct walk_shard *
walk_shard_new(const struct walk_shard_conf *conf, char **why)
{
	struct walk_shard *s = g_new0(struct walk_shard, 1);

	s->conf = conf;
	*why = NULL;
	if (!read_share(s, conf->shard))
		*why = g_strdup_printf("--shard: expected K/N with 1 <= K <= N <= %u, got \"%s\"",
		    SHARD_NODES_MAX, conf->shard);
	else if (conf->nodes == NULL && conf->balance == SHARD_CARP)
		*why = g_strdup("--balance=carp needs --nodes, the backends of the front");
	else {
		s->node = g_new0(struct node, s->n);
		if (conf->nodes != NULL)
			*why = read_nodes(s);
		if (*why == NULL && conf->balance != SHARD_CARP)
			*why = make_ring(s);
	}
	if (*why != NULL)
		walk_shard_free(&s);
	return (s);
}

void
walk_shard_free(struct walk_shard **sp)
{
	struct walk_shard *s = *sp;

	ring_free(&s->ring);
	g_free(s->node);
	g_free(s);
	*sp = NULL;
}

/* ---------------------------------------------------------------- one file */

static size_t
node_by_score(const struct walk_shard *s, struct text url)
{
	uint64_t key = rendezvous_key(text_of(s->conf->host), url);
	double score, most = -1;
	size_t best = 0;

	for (size_t i = 0; i < s->n; i++) {
		score = rendezvous_score(key, s->node[i].name, s->node[i].weight);
		if (score > most) {
			most = score;
			best = i;
		}
	}
	return (best);
}

static size_t
node_by_ring(const struct walk_shard *s, struct text url)
{
	g_autofree char *escaped = NULL;

	if (s->conf->balance == SHARD_URI) {
		escaped = g_malloc(3 * url.n);
		url = (struct text){ escaped, urlpath_escape(url, URL_OF_DECODED, escaped) };
	}
	return (ring_find(s->ring, ring_hash(s->conf->hash / 2, s->conf->hash % 2 == 0, url)));
}

bool
walk_shard_has(const struct walk_shard *s, struct text path)
{
	const char *prefix = s->conf->prefix != NULL ? s->conf->prefix : "";
	bool ends = g_str_has_suffix(prefix, "/");
	g_autofree char *url = NULL;

	while (path.n > 0 && path.p[0] == '/')
		text_take(&path, 1);
	url = g_strdup_printf("%s%s%.*s", prefix, ends ? "" : "/", (int)path.n, path.p);
	return ((s->ring != NULL ? node_by_ring : node_by_score)(s, text_of(url)) == s->mine);
}
