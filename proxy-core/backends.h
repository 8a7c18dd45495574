/* proxy-core/backends.h -- the backends of one block, in its order; each with its weight.
 *
 *   proxy-core.backends = ( "app:80",              "unix:/run/b" )
 *   places                  0                       1
 *   backends                10.0.0.1:80  10.0.0.2:80   unix:/run/b
 *
 * Names    a place that is a host name may get other addresses while workers use the list.  The
 *          version then grows, and each worker takes a copy (members.h).
 * Owner    the configuration.
 * Thread   backends_add() and backends_put(): the one that owns the list, before and after there
 *          are workers.  The others: any.
 */
#ifndef PROXY_CORE_BACKENDS_H
#define PROXY_CORE_BACKENDS_H

#include "proxy-core/backend.h"

#define BACKENDS_WEIGHT_MAX 256

struct backends {
	size_t n;
	struct backend *v[BACKENDS_MAX];
	unsigned weight[BACKENDS_MAX]; /* 1 to BACKENDS_WEIGHT_MAX */
	unsigned place[BACKENDS_MAX];  /* ascending */
	unsigned places, block;
	bool split;                     /* a backend for each address of a name */
	unsigned resolve_s;             /* names are looked up again after this time; 0: never */
	const char *spec[BACKENDS_MAX]; /* of each place, as written; memory of the owner */
	unsigned version;               /* atomic; the last member */
};

/* block, split and resolve_s are set before.  One more place, with n addresses: a backend each
 * (split), or one of them all.  0, -E2BIG or -ENOMEM. */
int backends_add(struct backends *, const char *spec, const struct address *, size_t n,
    unsigned weight);
void backends_put(struct backends *);

/* The place has these addresses from now on.  Backends that stay keep their order; *added and
 * *removed count the others.  0; -E2BIG or -ENOMEM: nothing changed. */
int backends_replace(struct backends *, unsigned place, const struct address *, size_t n,
    unsigned *added, unsigned *removed);
/* The place is a host name, so that it can have other addresses. */
bool backends_is_name(const struct backends *, unsigned place);

static inline unsigned
backends_version(const struct backends *list)
{
	return (__atomic_load_n(&list->version, __ATOMIC_ACQUIRE));
}

/* A copy that does not change.  Backends are never freed, so the copy has no owner. */
void backends_copy(const struct backends *, struct backends *to);

#endif
