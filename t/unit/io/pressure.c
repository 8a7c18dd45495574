/* t/unit/io/pressure.c -- what the kernel's texts about memory say, good ones and others; and the
 * thread that looks. */
#include <pthread.h>
#include <unistd.h>
#include "base/clock.h"
#include "io/memory/memory.h"
#include "io/memory/pressure.h"
#include "t/unit/test.h"

#define NONE PRESSURE_NONE

static struct psi
psi(const char *text)
{
	struct psi p = { NONE, NONE, NONE, NONE };

	pressure_parse_psi(text_of(text), &p);
	return (p);
}

static void
is(struct psi p, uint64_t some, uint64_t some_us, uint64_t full, uint64_t full_us)
{
	g_assert_cmpuint(p.some_10s, ==, some);
	g_assert_cmpuint(p.some_us, ==, some_us);
	g_assert_cmpuint(p.full_10s, ==, full);
	g_assert_cmpuint(p.full_us, ==, full_us);
}

TEST("/pressure/psi")
{
	is(psi("some avg10=12.34 avg60=1.00 avg300=0.50 total=68393\n"
	       "full avg10=0.07 avg60=0.00 avg300=0.00 total=1170\n"),
	    1234, 68393, 7, 1170);
	is(psi("some avg10=100.00 avg60=0.00 avg300=0.00 total=18446744073709551614"), 10000,
	    NONE - 1, NONE, NONE);
	is(psi("full total=5 avg10=3.5"), NONE, NONE, 350, 5);
	is(psi("full avg10=3"), NONE, NONE, 300, NONE);
}

TEST("/pressure/hostile-psi")
{
	static const char *const bad[] = { "", "\n", "some", "some ", "full  ", "some avg10",
		"some avg10=", "some avg10=. total=", "some avg10=1.x total=-1",
		"some avg10=101.00 total=99999999999999999999", "some avg10=-1.00 total=1.5",
		"some avg10=nan total=0x10", "someavg10=1.00 total=7", " some avg10=1.00",
		"SOME avg10=1.00", "avg10=1.00 total=1", "some =1 total =1" };
	const char good[] = "some avg10=1.00 avg60=2.00 total=3\nfull avg10=4.00 total=5\n";
	size_t i, n;

	for (i = 0; i < G_N_ELEMENTS(bad); i++)
		is(psi(bad[i]), NONE, NONE, NONE, NONE);
	for (n = 0; n <= sizeof(good); n++) { /* cut anywhere, with its NUL at last */
		g_autofree char *cut = g_memdup2(good, n != 0 ? n : 1);
		struct psi p = { NONE, NONE, NONE, NONE };

		pressure_parse_psi((struct text){ cut, n }, &p);
		g_assert_true(p.some_us == NONE || p.some_us == 3);
	}
}

static bool
refaults(const char *text, uint64_t *pages)
{
	*pages = 77;
	return (pressure_parse_refaults(text_of(text), pages));
}

TEST("/pressure/refaults")
{
	uint64_t n;

	g_assert_true(
	    refaults("anon 1\nworkingset_refault_anon 3\nworkingset_refault_file 9\n", &n));
	g_assert_cmpuint(n, ==, 9); /* v2, and vmstat */
	g_assert_true(refaults("workingset_refault_file 8\ntotal_cache 4\n"
			       "total_workingset_refault_file 12\nworkingset_refault_file 8\n",
	    &n));
	g_assert_cmpuint(n, ==, 12); /* v1, with the cgroups below */
	g_assert_true(refaults("workingset_refault 0", &n));
	g_assert_cmpuint(n, ==, 0); /* before Linux 5.9 */
	g_assert_false(refaults("", &n));
	g_assert_false(refaults("workingset_refault_file\nworkingset_refault_file \n"
				"workingset_refault_file -1\nworkingset_refault_file 1 2\n"
				" workingset_refault_file 1\nworkingset_refault_files 1\n",
	    &n));
	g_assert_cmpuint(n, ==, 77);
}

/* ---- the thread */

/* A lock that ThreadSanitizer understands. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static unsigned seen;

static void
on_look(void *arg, const struct pressure *p)
{
	g_assert_true(arg == &seen);
	g_assert_cmpuint(p->taken_ns, !=, 0);
	pthread_mutex_lock(&lock);
	seen++;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
}

static unsigned
seen_now(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = seen;
	pthread_mutex_unlock(&lock);
	return (n);
}

TEST("/pressure/looks")
{
	struct pressure first, next;

	pressure_get(&first);
	g_assert_cmpuint(first.taken_ns, ==, 0);
	g_assert_cmpuint(first.refault_bytes, ==, NONE);
	g_assert_true(pressure_fresh()); /* nothing was opened, so nothing can be had */
	pressure_ask();
	pressure_on_look(on_look, &seen);
	pressure_open();
	pressure_get(&first);
	g_assert_cmpuint(first.taken_ns, !=, 0);
	g_assert_cmpuint(first.limit_bytes, ==, io_memory_limit());
	g_assert_cmpuint(first.refault_bytes, !=, NONE); /* every Linux since 3.15 */
	g_assert_true(first.psi[PRESSURE_MACHINE].some_us != NONE ||
		      access("/proc/pressure/memory", R_OK) != 0);
	while (pressure_fresh())
		g_usleep(10000);
	g_assert_cmpuint(seen_now(), ==, 0);
	pressure_ask();
	pressure_ask(); /* no second look */
	pthread_mutex_lock(&lock);
	while (seen == 0)
		pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	pressure_get(&next);
	g_assert_cmpuint(next.taken_ns, >=, first.taken_ns + PRESSURE_GAP_MS * NS_PER_MS);
	g_assert_cmpuint(next.refault_bytes, >=, first.refault_bytes);
	g_assert_cmpuint(seen_now(), ==, 1);
}
