/* t/unit/files/lookup.c -- the table of names: finding, answering, eviction. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/clock.h"
#include "files/lookup.h"
#include "io/loop/sim.h"
#include "t/unit/test.h"

static struct io *io;
static struct lookup_table table;
static unsigned freed;

static void
count_free(struct lookup *l)
{
	freed++;
	free(l);
}

static void
up(void)
{
	io = sim_new();
	freed = 0;
	g_assert_cmpint(lookup_init(&table, io, 10, count_free), ==, 0);
}

static void
down(void)
{
	lookup_fini(&table);
	io_free(io);
}

/* All entries have one hash, so that only their names tell them apart. */
static struct lookup *
add(const char *path)
{
	struct lookup *l = lookup_new(&table, sizeof(*l), NULL, text_of(path), 7);

	g_assert_nonnull(l);
	lookup_add(l);
	return (l);
}

static struct lookup *
find(const char *path)
{
	return (lookup_find(&table, NULL, text_of(path), 7));
}

TEST("/lookup/find")
{
	struct file_scope *scope = (struct file_scope *)(void *)&table; /* any other than NULL */
	struct lookup *a, *ab;

	up();
	a = add("a");
	ab = add("ab");
	g_assert_true(find("a") == a);
	g_assert_true(find("ab") == ab);
	g_assert_null(find("b"));
	g_assert_null(lookup_find(&table, scope, TEXT("a"), 7));
	g_assert_null(lookup_find(&table, NULL, TEXT("a"), 7 + 1024)); /* the same slot */
	lookup_ref(a);
	lookup_remove(a);
	lookup_remove(a); /* may be repeated */
	g_assert_null(find("a"));
	g_assert_cmpmem(a->path.p, a->path.n, "a", 1); /* held */
	g_assert_cmpuint(freed, ==, 0);
	lookup_put(a);
	g_assert_cmpuint(freed, ==, 1);
	down();
	g_assert_cmpuint(freed, ==, 2);
}

/* ---- waiters */

struct asker {
	struct lookup_wait wait;
	struct lookup *answer;
	struct asker *leaves; /* when this one is answered */
};

static void
asker_done(struct lookup_wait *w, struct lookup *l)
{
	struct asker *a = container_of(w, struct asker, wait);

	g_assert_null(a->answer);
	a->answer = l;
	if (a->leaves != NULL)
		g_assert_true(lookup_leave(&a->leaves->wait));
}

static void
join(struct asker *a, struct lookup *l)
{
	*a = (struct asker){ .wait.done = asker_done };
	lookup_join(l, &a->wait);
}

UP_TEST("/lookup/waiters")
{
	struct asker a, b, c, never = { 0 };
	struct lookup *l, *other;

	l = add("name");
	other = add("other");
	g_assert_false(lookup_leave(&never.wait));
	join(&a, l);
	join(&b, l);
	g_assert_false(lookup_leave(&a.wait)); /* b waits */
	g_assert_false(lookup_leave(&a.wait));
	join(&c, l);
	b.leaves = &c;
	lookup_move_waiters(other, l);
	lookup_tell(l, l);
	g_assert_null(b.answer);
	lookup_tell(other, l);
	g_assert_true(b.answer == l);
	g_assert_null(a.answer);
	g_assert_null(c.answer);
	g_assert_cmpuint(l->refs, ==, 2);
	lookup_put(b.answer);
}

/* ---- bounds */

TEST("/lookup/bounds")
{
	struct lookup_list files, absent;
	struct lookup *a, *b, *c, *outside;

	up();
	lookup_list_init(&files);
	lookup_list_init(&absent);
	g_assert_null(lookup_oldest(&files));
	a = add("a");
	b = add("b");
	c = add("c");
	lookup_keep(a, &files, 10);
	lookup_keep(b, &files, 20);
	lookup_keep(c, &files, 30);
	lookup_keep(a, &files, 5); /* used again: the last one now */
	g_assert_true(lookup_oldest(&files) == b);
	g_assert_cmpuint(files.n, ==, 3);
	g_assert_cmpuint(files.bytes, ==, 55);
	g_assert_null(lookup_surplus(&files, 3, 55));
	g_assert_true(lookup_surplus(&files, 3, 54) == b);
	g_assert_true(lookup_surplus(&files, 2, UINT64_MAX) == b);
	lookup_remove(b);
	g_assert_null(find("b"));
	g_assert_null(lookup_surplus(&files, 2, 35));
	lookup_remove(lookup_surplus(&files, 1, UINT64_MAX));
	g_assert_true(find("a") == a);
	lookup_keep(a, &absent, 1); /* in one list at a time */
	g_assert_cmpuint(files.n + files.bytes, ==, 0);
	g_assert_cmpuint(absent.n + absent.bytes, ==, 2);
	g_assert_null(lookup_surplus(&files, 0, 0));
	outside = lookup_new(&table, sizeof(*outside), NULL, TEXT("x"), 7);
	lookup_keep(outside, &files, 1); /* not in the table */
	g_assert_cmpuint(files.n, ==, 0);
	lookup_put(outside);
	g_assert_cmpuint(freed, ==, 3);
	down();
	g_assert_cmpuint(freed, ==, 4);
}

UP_TEST("/lookup/age")
{
	struct lookup *l;

	l = add("name");
	l->checked_ns = io_now(io);
	g_assert_cmpuint(lookup_age(l), ==, 0);
	sim_advance_ms(io, 30);
	g_assert_cmpuint(lookup_age(l), ==, 30 * NS_PER_MS);
	l->checked_ns = io_now(io) + 1; /* by a thread, after the round began */
	g_assert_cmpuint(lookup_age(l), ==, 0);
	g_assert_true(lookup_is_permanent(0) && lookup_is_permanent(-EISDIR));
	g_assert_false(lookup_is_permanent(-EIO) || lookup_is_permanent(-ETIMEDOUT));
}

/* Pages of the table that have memory. */
static size_t
pages_used(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0, i;
	uintptr_t from = ((uintptr_t)table.slot + page - 1) / page * page;
	size_t pages = (size_t)((uintptr_t)(table.slot + table.mask + 1) - from) / page;
	unsigned char *is = g_malloc(pages);

	g_assert_cmpint(mincore((void *)from, pages * page, is), ==, 0);
	for (i = 0; i < pages; i++)
		n += is[i] & 1;
	g_free(is);
	return (n);
}

/* 1024 pages of 512 slots, and ten entries in each page. */
static void
fill_and_empty(bool locked)
{
	static struct lookup *l[10 << 10];
	size_t i;

	io = sim_new();
	g_assert_cmpint(lookup_init(&table, io, 1 << 19, count_free), ==, 0);
	if (locked &&
	    mlock2(table.slot, (table.mask + 1) * sizeof(*table.slot), MLOCK_ONFAULT) != 0)
		g_test_skip("the limit of locked memory is too low");
	for (i = 0; i < G_N_ELEMENTS(l); i++) {
		l[i] = lookup_new(&table, sizeof(*l[i]), NULL, text_of("a"), i * 512);
		g_assert_nonnull(l[i]);
		lookup_add(l[i]);
	}
	g_assert_cmpuint(pages_used(), >=, 1000);
	for (i = 0; i < G_N_ELEMENTS(l); i++)
		lookup_remove(l[i]);
	g_assert_cmpuint(pages_used(), <, 10);
	down();
}

TEST("/lookup/an empty table has no pages")
{
	fill_and_empty(false);
}

TEST("/lookup/nor when it is locked")
{
	fill_and_empty(true);
}
