/* walk/shard.h -- whether a balancer sends the URL of a file to one of its nodes.
 *
 * Nodes    "NAME" or "NAME=WEIGHT".  NAME is the id of a server of HAProxy, or the backend of
 *          accel-server as in its configuration.
 * Owner    the texts of the settings stay with the caller as long as the shard lives.
 * Thread   any, after walk_shard_new().
 */
#ifndef WALK_SHARD_H
#define WALK_SHARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define SHARD_NODES_MAX 1024u

/* What the balancer hashes. */
enum shard_balance {
	SHARD_PATH, /* HAProxy, balance hash path,url_dec: the decoded path */
	SHARD_URI,  /* HAProxy, balance uri path-only: the path as it is encoded */
	SHARD_CARP, /* accel-server, proxy-core.balancer = "carp" */
};

struct walk_shard_conf {
	const char *shard;        /* "K/N", from 1; NULL: all files */
	const char *const *nodes; /* NULL: ids 1 to N */
	unsigned weight;          /* of nodes without one */
	enum shard_balance balance;
	unsigned hash;      /* of HAProxy: twice enum ring_hash, + 1 without avalanche */
	const char *host;   /* carp: as the front sends it; NULL: none */
	const char *prefix; /* of the URLs, before the paths below the root */
};

struct walk_shard;

/* NULL: wrong, and *why says what; it is a text that g_free() frees. */
struct walk_shard *walk_shard_new(const struct walk_shard_conf *, char **why);
void walk_shard_free(struct walk_shard **);
/* path: below the root, with or without slashes at its start. */
bool walk_shard_has(const struct walk_shard *, struct text path);

#endif
