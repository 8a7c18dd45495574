/* t/unit/io/hotset.c -- windows in the server's own memory: what is found, what makes room. */
#include <pthread.h>
#include <string.h>
#include "base/clock.h"
#include "io/hotset.h"
#include "io/io.h"
#include "t/unit/test.h"

#define BUDGET (4u << 20) /* 16 windows */
#define WHOLE  IO_WINDOW
#define MINUTE (60 * NS_PER_S)

static struct hotset *hs;
static struct io_version version = { .size = 1, .mtime_s = 5, .ctime_s = 6 };

static struct held_key
key(uint64_t nr)
{
	return ((struct held_key){ .dev = 7, .ino = 1000 + nr % 3, .nr = nr });
}

/* Adds a window whose bytes are its number. */
static bool
add(uint64_t nr, uint32_t len, uint64_t interval, uint64_t now)
{
	struct held_key k = key(nr);
	struct iovec iov[HOTSET_PIECES];
	unsigned dropped;
	struct held *w = hotset_room(hs, len, interval, now, &dropped);
	int i, n;

	if (w == NULL)
		return (false);
	n = held_iov(w, 0, iov, HOTSET_PIECES);
	for (i = 0; i < n; i++)
		memset(iov[i].iov_base, (int)nr, iov[i].iov_len);
	hotset_add(w, &k, &version, now, now + 5 * MINUTE);
	return (true);
}

static struct held *
get(uint64_t nr, uint64_t now)
{
	struct held_key k = key(nr);

	return (hotset_get(hs, &k, &version, now));
}

static bool
has(uint64_t nr, uint64_t now)
{
	struct held *w = get(nr, now);

	if (w != NULL)
		hotset_put(w);
	return (w != NULL);
}

static uint64_t
held_bytes(void)
{
	struct io_hotset_status v = { 0 };

	hotset_status(hs, &v);
	return (v.bytes);
}

static void
down(void)
{
	hotset_free(hs);
}

TEST("/hotset/found")
{
	struct io_version other = version;
	struct iovec iov[HOTSET_PIECES];
	struct held_key k = key(1);
	struct held *w;
	uint64_t sum = 0;
	int i, n;

	hs = hotset_new(BUDGET);
	g_assert_null(get(1, 1));
	g_assert_true(add(1, 100000, 0, 1));
	w = get(1, 2);
	g_assert_nonnull(w);
	n = held_iov(w, 99, iov, HOTSET_PIECES);
	for (i = 0; i < n; i++)
		sum += iov[i].iov_len;
	g_assert_cmpuint(sum, ==, 100000 - 99);
	g_assert_cmpint(*(char *)iov[0].iov_base, ==, 1);
	g_assert_cmpint(held_iov(w, 100000, iov, HOTSET_PIECES), ==, 0);
	hotset_put(w);
	other.mtime_s++;
	g_assert_null(hotset_get(hs, &k, &other, 3)); /* other contents */
	other = version;
	other.ctime_s++;
	other.nlink++;
	g_assert_null(hotset_get(hs, &k, &other, 3)); /* perhaps only another name */
	g_assert_false(has(2, 4));
	g_assert_true(has(1, 5 * MINUTE));
	g_assert_false(has(1, 5 * MINUTE + 1)); /* its time is over */
	g_assert_cmpuint(held_bytes(), ==, 4 * HOTSET_PIECE);
	down();
}

/* A window of the same key takes the place of the old one, which lives while it is sent. */
TEST("/hotset/replaced")
{
	struct iovec iov[HOTSET_PIECES];
	struct held *w;

	hs = hotset_new(BUDGET);
	g_assert_true(add(1, WHOLE, 0, 1));
	w = get(1, 2);
	version.mtime_s++;
	g_assert_true(add(1, WHOLE, 0, 3));
	g_assert_true(has(1, 4));
	g_assert_cmpuint(held_bytes(), ==, 2 * WHOLE);
	g_assert_cmpint(held_iov(w, 0, iov, HOTSET_PIECES), >, 0);
	g_assert_cmpint(*(char *)iov[0].iov_base, ==, 1);
	hotset_put(w);
	g_assert_cmpuint(held_bytes(), ==, WHOLE);
	version.mtime_s--;
	down();
}

TEST("/hotset/room")
{
	uint64_t i, now = MINUTE;

	hs = hotset_new(BUDGET);
	for (i = 0; i < 16; i++)
		g_assert_true(add(i, WHOLE, NS_PER_S, now));
	g_assert_cmpuint(held_bytes(), ==, BUDGET);
	/* none was left alone for a second */
	g_assert_false(add(16, WHOLE, NS_PER_S, now + NS_PER_MS));
	now += MINUTE;
	g_assert_true(has(0, now)); /* the oldest is asked for again */
	g_assert_true(add(16, WHOLE, NS_PER_S, now));
	g_assert_true(has(0, now));
	g_assert_false(has(1, now));
	g_assert_cmpuint(held_bytes(), ==, BUDGET);
	g_assert_true(add(17, 1, NS_PER_S, now)); /* one byte takes a whole window's place */
	g_assert_true(add(18, 1, NS_PER_S, now));
	g_assert_cmpuint(held_bytes(), ==, BUDGET - WHOLE + 2 * HOTSET_PIECE);
	down();
}

/* Slow readers of dropped windows cannot take more than the budget. */
TEST("/hotset/held-up")
{
	struct held *w[16];
	uint64_t i, now = MINUTE;

	hs = hotset_new(BUDGET);
	for (i = 0; i < 16; i++) {
		g_assert_true(add(i, WHOLE, 0, now));
		w[i] = get(i, now);
	}
	now += MINUTE;
	g_assert_false(add(16, WHOLE, 0, now)); /* all were dropped, and none is free */
	g_assert_cmpuint(held_bytes(), ==, BUDGET);
	g_assert_false(has(3, now));
	for (i = 0; i < 16; i++)
		hotset_put(w[i]);
	g_assert_cmpuint(held_bytes(), ==, 0);
	g_assert_true(add(16, WHOLE, 0, now));
	down();
}

/* A full set takes in its own size in ten seconds, not more. */
TEST("/hotset/turnover")
{
	uint64_t i, now = MINUTE, n = 0;

	hs = hotset_new(BUDGET);
	for (i = 0; i < 16; i++) {
		g_assert_true(hotset_wants(hs, WHOLE, now));
		g_assert_true(add(i, WHOLE, 0, now));
	}
	for (i = 0; i < 10000; i++)
		n += hotset_wants(hs, WHOLE, now + i * NS_PER_MS);
	g_assert_cmpuint(n, ==, 16);
	down();
}

/* The generation is superseded: a window that is being sent lives, nothing else does. */
TEST("/hotset/closed")
{
	struct iovec iov[HOTSET_PIECES];
	struct held *w;

	hs = hotset_new(BUDGET);
	g_assert_true(add(1, WHOLE, 0, 1));
	g_assert_true(add(2, WHOLE, 0, 1));
	w = get(2, 1);
	hotset_close(hs);
	g_assert_false(has(1, 2));
	g_assert_false(has(2, 2));
	g_assert_false(hotset_wants(hs, WHOLE, MINUTE));
	g_assert_false(add(3, WHOLE, 0, MINUTE));
	g_assert_cmpuint(held_bytes(), ==, WHOLE);
	g_assert_cmpint(held_iov(w, 0, iov, HOTSET_PIECES), >, 0);
	g_assert_cmpint(*(char *)iov[0].iov_base, ==, 2);
	hotset_put(w);
	g_assert_cmpuint(held_bytes(), ==, 0);
	down();
}

TEST("/hotset/none")
{
	g_assert_null(hotset_new(0));
	g_assert_null(hotset_new(HOTSET_PIECE));
}

/* ---------------------------------------------------------------- many threads */

static void *
worker(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg, i, nr;
	struct iovec iov[HOTSET_PIECES];
	struct held *w;
	int n;

	for (i = 1; i < 20000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		nr = seed >> 33 & 31;
		w = get(nr, i * NS_PER_MS);
		if (w == NULL) {
			if (hotset_wants(hs, WHOLE, i * NS_PER_MS))
				(void)add(nr, 1 + (uint32_t)(seed >> 40 & 0x1ffff), 0,
				    i * NS_PER_MS);
			continue;
		}
		n = held_iov(w, 0, iov, HOTSET_PIECES);
		g_assert_cmpint(n, >, 0);
		g_assert_cmpint(*(char *)iov[n - 1].iov_base, ==, (int)nr);
		hotset_put(w);
	}
	return (NULL);
}

TEST("/hotset/threads")
{
	pthread_t t[4];
	struct io_hotset_status v = { 0 };
	uintptr_t i;

	hs = hotset_new(2 * WHOLE);
	for (i = 0; i < 4; i++)
		g_assert_cmpint(pthread_create(&t[i], NULL, worker, (void *)(i + 1)), ==, 0);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	hotset_status(hs, &v);
	g_assert_cmpuint(v.bytes, <=, 2 * WHOLE);
	g_assert_cmpuint(v.windows, >, 0);
	down();
}
