/* io/hotset.c -- see hotset.h.
 *
 *   shard of the key --> chain --> held --> numbers of its pieces --> memory[piece * HOTSET_PIECE]
 *   list, newest first <-- at the tail, the window not asked for the longest makes room
 *
 * Two kinds of locks: one for the list and the free pieces, one for each shard of chains.  While
 * the list's lock is held, a shard's may be taken.  A hit takes only the shard's lock, and does not
 * move the window; it notes the time.  A window at the tail that was asked for since then goes to
 * the front.
 */
#include "io/hotset.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/clock.h"
#include "base/list.h"
#include "io/io.h"

#define SHARDS      64u
#define LOOKS       64u               /* windows tried as a victim, for one that needs room */
#define TURNOVER_NS (10 * NS_PER_S)   /* a full set replaces all its bytes in this time */
#define NOTE_NS     (100 * NS_PER_MS) /* a hit is noted at most this often */

_Static_assert(HOTSET_PIECE *HOTSET_PIECES == IO_WINDOW, "a window fits");

struct held {
	struct list link;  /* protected by the list's lock */
	struct held *next; /* in its chain; protected by the shard's lock */
	struct hotset *of;
	struct held_key key;
	struct io_version version;
	uint64_t used_ns; /* atomic: last time it was asked for */
	uint64_t listed_ns, until_ns;
	uint32_t refs; /* atomic */
	uint32_t len, npieces;
	uint32_t piece[HOTSET_PIECES];
};

struct shard {
	_Alignas(64) pthread_mutex_t lock;
};

struct hotset {
	char *memory;
	uint64_t budget;
	pthread_mutex_t lock; /* of the list and the free pieces */
	struct list windows;  /* newest first */
	uint64_t nwindows;
	uint32_t npieces;
	uint32_t nfree; /* the loops look at it without the lock: written by set_free() */
	/* Stack of pieces that were in use.  Those from `fresh` on take no memory yet. */
	uint32_t *free, nback, fresh;
	bool closed;
	uint64_t next_ns; /* atomic: a full set takes no window before that */
	uint64_t mask;
	struct held **chain;
	struct shard shard[SHARDS];
};

/* ---------------------------------------------------------------- the set */

struct hotset *
hotset_new(uint64_t budget)
{
	uint64_t chains = SHARDS, pieces = budget / HOTSET_PIECE, i;
	struct hotset *hs;

	if (pieces < HOTSET_PIECES || pieces > UINT32_MAX)
		return (NULL);
	if (posix_memalign((void **)&hs, 64, sizeof(*hs)) != 0)
		return (NULL);
	memset(hs, 0, sizeof(*hs));
	while (chains < pieces / 4)
		chains *= 2;
	hs->chain = calloc(chains, sizeof(struct held *));
	hs->free = malloc(pieces * sizeof(*hs->free));
	hs->memory = mmap(NULL, pieces * HOTSET_PIECE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (hs->chain == NULL || hs->free == NULL || hs->memory == MAP_FAILED) {
		if (hs->memory != MAP_FAILED)
			munmap(hs->memory, pieces * HOTSET_PIECE);
		free(hs->chain);
		free(hs->free);
		free(hs);
		return (NULL);
	}
	hs->budget = pieces * HOTSET_PIECE;
	hs->npieces = hs->nfree = (uint32_t)pieces;
	hs->mask = chains - 1;
	list_init(&hs->windows);
	pthread_mutex_init(&hs->lock, NULL);
	for (i = 0; i < SHARDS; i++)
		pthread_mutex_init(&hs->shard[i].lock, NULL);
	return (hs);
}

static uint64_t
hash(const struct held_key *k)
{
	uint64_t h = (k->ino ^ k->dev << 40) * 0x9e3779b97f4a7c15ull + k->nr;

	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15ull;
	return (h ^ h >> 29);
}

static bool
same_key(const struct held_key *a, const struct held_key *b)
{
	return (a->ino == b->ino && a->nr == b->nr && a->dev == b->dev);
}

static struct shard *
shard_of(struct hotset *hs, uint64_t h)
{
	return (&hs->shard[h % SHARDS]);
}

/* Gives the pages of a piece to the sockets that still refer to them.  False: the pages stay. */
static bool
give_back(struct hotset *hs, uint32_t piece)
{
	char *p = hs->memory + (uint64_t)piece * HOTSET_PIECE;
	void *at = p;

	if (madvise(p, HOTSET_PIECE, MADV_DONTNEED) != 0)
		at = mmap(p, HOTSET_PIECE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return (at == p);
}

static void
set_free(struct hotset *hs, uint32_t n)
{
	__atomic_store_n(&hs->nfree, n, __ATOMIC_RELAXED);
}

/* The caller has the list's lock. */
static void
pieces_back(struct held *w)
{
	struct hotset *hs = w->of;

	set_free(hs, hs->nfree + w->npieces);
	while (w->npieces > 0)
		hs->free[hs->nback++] = w->piece[--w->npieces];
}

/* The caller has the list's lock. */
static void
pieces_take(struct held *w, uint32_t want)
{
	struct hotset *hs = w->of;

	for (; w->npieces < want; w->npieces++)
		w->piece[w->npieces] = hs->nback > 0 ? hs->free[--hs->nback] : hs->fresh++;
	set_free(hs, hs->nfree - want);
}

/* Gives the old pages away, because sockets may still refer to them; new bytes get new pages.
 * (madvise(2) cannot for locked memory.)  False: these pieces may not be written. */
static bool
renew(struct held *w)
{
	uint32_t i;

	for (i = 0; i < w->npieces; i++)
		if (!give_back(w->of, w->piece[i]))
			return (false);
	return (true);
}

void
hotset_put(struct held *w)
{
	struct hotset *hs = w->of;
	uint32_t i;

	if (__atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	if (__atomic_load_n(&hs->closed, __ATOMIC_RELAXED))
		for (i = 0; i < w->npieces; i++)
			(void)give_back(hs, w->piece[i]);
	pthread_mutex_lock(&hs->lock);
	pieces_back(w);
	pthread_mutex_unlock(&hs->lock);
	free(w);
}

/* The place in its chain; call it with the shard's lock. */
static struct held **
find(struct hotset *hs, uint64_t h, const struct held_key *k)
{
	struct held **at = &hs->chain[h & hs->mask];

	while (*at != NULL && !same_key(&(*at)->key, k))
		at = &(*at)->next;
	return (at);
}

/* The times of bytes that are kept are compared strictly: a new change time alone may be a write
 * whose time of modification was set back.  A chmod costs one read. */
static bool
same_times(const struct io_version *a, const struct io_version *b)
{
	return (a->size == b->size && a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns &&
		a->ctime_s == b->ctime_s && a->ctime_ns == b->ctime_ns);
}

struct held *
hotset_get(struct hotset *hs, const struct held_key *k, const struct io_version *v, uint64_t now)
{
	uint64_t h = hash(k);
	struct shard *s = shard_of(hs, h);
	struct held *w;

	pthread_mutex_lock(&s->lock);
	w = *find(hs, h, k);
	if (w != NULL && same_times(&w->version, v) && now < w->until_ns)
		__atomic_add_fetch(&w->refs, 1, __ATOMIC_RELAXED);
	else
		w = NULL;
	pthread_mutex_unlock(&s->lock);
	if (w != NULL && now > __atomic_load_n(&w->used_ns, __ATOMIC_RELAXED) + NOTE_NS)
		__atomic_store_n(&w->used_ns, now, __ATOMIC_RELAXED);
	return (w);
}

static char *
bytes_of(const struct held *w, uint32_t off)
{
	return (w->of->memory + (uint64_t)w->piece[off / HOTSET_PIECE] * HOTSET_PIECE +
		off % HOTSET_PIECE);
}

int
held_iov(const struct held *w, uint32_t from, struct iovec *iov, int max)
{
	uint32_t at = from, n;
	char *p;
	int i = 0;

	for (; at < w->len; at += n) {
		n = HOTSET_PIECE - at % HOTSET_PIECE;
		n = n < w->len - at ? n : w->len - at;
		p = bytes_of(w, at);
		if (i > 0 && (char *)iov[i - 1].iov_base + iov[i - 1].iov_len == p) {
			iov[i - 1].iov_len += n;
			continue;
		}
		if (i == max)
			break;
		iov[i++] = (struct iovec){ p, n };
	}
	return (i);
}

/* ---------------------------------------------------------------- room */

/* Call it with the list's lock.  Its pieces come back with the last reference. */
static void
drop(struct held *w)
{
	struct hotset *hs = w->of;
	uint64_t h = hash(&w->key);
	struct shard *s = shard_of(hs, h);
	struct held **at;

	pthread_mutex_lock(&s->lock);
	for (at = &hs->chain[h & hs->mask]; *at != w;)
		at = &(*at)->next;
	*at = w->next;
	pthread_mutex_unlock(&s->lock);
	list_del(&w->link);
	hs->nwindows--;
	if (__atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) == 0) {
		pieces_back(w);
		free(w);
	}
}

/* The window at the tail, if it was asked for less often than every `interval` ns.  Call it with
 * the list's lock.  False: it stays. */
static bool
drop_last(struct hotset *hs, uint64_t interval, uint64_t now)
{
	struct held *w = list_entry(hs->windows.prev, struct held, link);
	uint64_t used = __atomic_load_n(&w->used_ns, __ATOMIC_RELAXED);

	if (used > w->listed_ns || now < used + interval) {
		w->listed_ns = used > w->listed_ns ? used : now;
		list_del(&w->link);
		list_add_head(&hs->windows, &w->link);
		return (false);
	}
	drop(w);
	return (true);
}

bool
hotset_wants(struct hotset *hs, uint32_t len, uint64_t now)
{
	uint64_t next;

	if (__atomic_load_n(&hs->closed, __ATOMIC_RELAXED))
		return (false);
	if (__atomic_load_n(&hs->nfree, __ATOMIC_RELAXED) >= HOTSET_PIECES)
		return (true);
	next = __atomic_load_n(&hs->next_ns, __ATOMIC_RELAXED);
	return (now >= next && __atomic_compare_exchange_n(&hs->next_ns, &next,
				   now + TURNOVER_NS * len / hs->budget, false, __ATOMIC_RELAXED,
				   __ATOMIC_RELAXED));
}

struct held *
hotset_room(struct hotset *hs, uint32_t len, uint64_t interval, uint64_t now, unsigned *dropped)
{
	uint32_t want = (len + HOTSET_PIECE - 1) / HOTSET_PIECE;
	struct held *w = calloc(1, sizeof(*w));
	unsigned looks;

	*dropped = 0;
	if (w == NULL)
		return (NULL);
	list_init(&w->link);
	w->of = hs;
	w->len = len;
	w->refs = 1;
	pthread_mutex_lock(&hs->lock);
	for (looks = 0; hs->nfree < want && hs->nwindows != 0 && looks < LOOKS; looks++)
		*dropped += drop_last(hs, interval, now);
	if (hs->nfree >= want && !hs->closed)
		pieces_take(w, want);
	pthread_mutex_unlock(&hs->lock);
	if (w->npieces == want && renew(w))
		return (w);
	hotset_put(w);
	return (NULL);
}

/* Two threads may read the same window: the later window stays. */
void
hotset_add(struct held *w, const struct held_key *k, const struct io_version *v, uint64_t now,
    uint64_t until)
{
	struct hotset *hs = w->of;
	uint64_t h = hash(k);
	struct shard *s = shard_of(hs, h);
	struct held *old;

	w->key = *k;
	w->version = *v;
	w->until_ns = until;
	w->used_ns = w->listed_ns = now;
	pthread_mutex_lock(&hs->lock);
	pthread_mutex_lock(&s->lock);
	old = *find(hs, h, k);
	pthread_mutex_unlock(&s->lock);
	if (old != NULL)
		drop(old);
	pthread_mutex_lock(&s->lock);
	w->next = hs->chain[h & hs->mask];
	hs->chain[h & hs->mask] = w;
	pthread_mutex_unlock(&s->lock);
	list_add_head(&hs->windows, &w->link);
	hs->nwindows++;
	pthread_mutex_unlock(&hs->lock);
}

void
hotset_close(struct hotset *hs)
{
	uint32_t i, n;

	if (hs == NULL)
		return;
	pthread_mutex_lock(&hs->lock);
	__atomic_store_n(&hs->closed, true, __ATOMIC_RELAXED);
	while (!list_empty(&hs->windows))
		drop(list_entry(hs->windows.prev, struct held, link));
	n = hs->nback;
	pthread_mutex_unlock(&hs->lock);
	for (i = 0; i < n; i++)
		(void)give_back(hs, hs->free[i]);
}

void
hotset_free(struct hotset *hs)
{
	unsigned i;

	if (hs == NULL)
		return;
	while (!list_empty(&hs->windows))
		drop(list_entry(hs->windows.prev, struct held, link));
	if (hs->nfree != hs->npieces)
		return; /* a loop that a hung device holds still has some windows */
	munmap(hs->memory, hs->budget);
	for (i = 0; i < SHARDS; i++)
		pthread_mutex_destroy(&hs->shard[i].lock);
	pthread_mutex_destroy(&hs->lock);
	free(hs->chain);
	free(hs->free);
	free(hs);
}

void
hotset_status(struct hotset *hs, struct io_hotset_status *v)
{
	if (hs == NULL)
		return;
	pthread_mutex_lock(&hs->lock);
	v->bytes = (uint64_t)(hs->npieces - hs->nfree) * HOTSET_PIECE;
	v->windows = hs->nwindows;
	v->budget = hs->budget;
	pthread_mutex_unlock(&hs->lock);
}
