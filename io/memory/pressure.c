/* io/memory/pressure.c -- see pressure.h */
#include "io/memory/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "io/memory/cgroup.h"
#include "io/memory/memory.h"

#define TEXT_MAX   16384 /* bytes of a file; vmstat has 4 kB, memory.stat of v2 up to 5 kB */
#define STACK_SIZE (64u << 10)

const char *const pressure_scopes[PRESSURE_SCOPES] = { "machine", "cgroup" };

#define NO_PSI                                                             \
	{                                                                  \
		PRESSURE_NONE, PRESSURE_NONE, PRESSURE_NONE, PRESSURE_NONE \
	}

/* Written once, at start. */
static struct {
	int psi[PRESSURE_SCOPES], refaults, used; /* -1: the kernel does not have it */
	enum pressure_scope refaults_of;
	bool opened;
} files = { .psi = { -1, -1 }, .refaults = -1, .used = -1 };

/* Under the lock. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t asked;
	struct pressure first, last;
	bool wanted, running, refused; /* running: the thread; refused: there can be none */
} looks = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.asked = PTHREAD_COND_INITIALIZER,
	.last = { .psi = { NO_PSI, NO_PSI },
	    .refault_bytes = PRESSURE_NONE,
	    .used_bytes = PRESSURE_NONE,
	    .limit_bytes = PRESSURE_NONE } };

static struct {
	pthread_mutex_t lock; /* held during the call */
	pressure_seen *fn;
	void *arg;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- parsing */

/* "1.25": 125.  More digits are cut off. */
static bool
hundredths(struct text t, uint64_t *v)
{
	struct text whole, part = TEXT_NONE;
	uint64_t n, k = 0;

	if (!text_next(&t, '.', &whole) || text_u64(whole, &n) != 0 || n > 100)
		return (false);
	if (t.p != NULL) {
		part = t;
		part.n = part.n > 2 ? 2 : part.n;
		if (text_u64(part, &k) != 0)
			return (false);
		k *= part.n == 1 ? 10 : 1;
	}
	*v = n * 100 + k;
	return (true);
}

/* avg10=0.00 avg60=0.00 avg300=0.00 total=68393 */
static void
psi_line(struct text line, uint64_t *avg10, uint64_t *total)
{
	struct text word, name;
	uint64_t v;

	while (text_next(&line, ' ', &word)) {
		if (!text_next(&word, '=', &name) || word.p == NULL)
			continue;
		if (text_eq(name, TEXT("avg10")) && hundredths(word, &v))
			*avg10 = v;
		if (text_eq(name, TEXT("total")) && text_u64(word, &v) == 0)
			*total = v;
	}
}

void
pressure_parse_psi(struct text t, struct psi *psi)
{
	struct text line, kind;

	while (text_next(&t, '\n', &line)) {
		if (!text_next(&line, ' ', &kind))
			continue;
		if (text_eq(kind, TEXT("some")))
			psi_line(line, &psi->some_10s, &psi->some_us);
		else if (text_eq(kind, TEXT("full")))
			psi_line(line, &psi->full_10s, &psi->full_us);
	}
}

/* Names from the best to the worst: with the cgroups below (v1), files only, before Linux 5.9. */
bool
pressure_parse_refaults(struct text t, uint64_t *pages)
{
	static const char *const names[] = { "total_workingset_refault_file",
		"workingset_refault_file", "workingset_refault" };
	size_t best = NELEM(names), i;
	struct text line, name;
	uint64_t v;

	while (text_next(&t, '\n', &line)) {
		if (!text_next(&line, ' ', &name) || text_u64(line, &v) != 0)
			continue;
		for (i = 0; i < best && !text_eq(name, text_of(names[i])); i++)
			;
		if (i < best) {
			best = i;
			*pages = v;
		}
	}
	return (best < NELEM(names));
}

/* ---- looking */

static struct text
read_file(int fd, char text[TEXT_MAX])
{
	ssize_t n = fd >= 0 ? pread(fd, text, TEXT_MAX, 0) : -1;

	return (n > 0 ? (struct text){ text, (size_t)n } : TEXT_NONE);
}

static void
look(struct pressure *p)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages;
	char text[TEXT_MAX];
	int i;

	*p = (struct pressure){ .psi = { NO_PSI, NO_PSI },
		.refault_bytes = PRESSURE_NONE,
		.used_bytes = PRESSURE_NONE };
	for (i = 0; i < PRESSURE_SCOPES; i++)
		pressure_parse_psi(read_file(files.psi[i], text), &p->psi[i]);
	if (pressure_parse_refaults(read_file(files.refaults, text), &pages))
		p->refault_bytes = pages * page;
	p->refaults_of = files.refaults_of;
	(void)io_memory_limit_parse(read_file(files.used, text), &p->used_bytes);
	p->limit_bytes = io_memory_limit();
	p->taken_ns = clock_mono_ns();
}

static void
publish(const struct pressure *p)
{
	pthread_mutex_lock(&looks.lock);
	looks.last = *p;
	if (looks.first.taken_ns == 0)
		looks.first = *p;
	looks.wanted = false;
	pthread_mutex_unlock(&looks.lock);
}

static void
wait_until_asked(void)
{
	pthread_mutex_lock(&looks.lock);
	while (!looks.wanted)
		pthread_cond_wait(&looks.asked, &looks.lock);
	pthread_mutex_unlock(&looks.lock);
}

void
pressure_look(void)
{
	struct pressure p;

	if (!files.opened)
		return;
	look(&p);
	publish(&p);
}

static void
tell(const struct pressure *p)
{
	pthread_mutex_lock(&seen.lock);
	if (seen.fn != NULL)
		seen.fn(seen.arg, p);
	pthread_mutex_unlock(&seen.lock);
}

static void *
looker(void *arg)
{
	struct pressure p;

	(void)pthread_setname_np(pthread_self(), "pressure");
	for (;;) {
		wait_until_asked();
		look(&p);
		publish(&p);
		tell(&p);
	}
	return (arg);
}

static bool
is_fresh(void)
{
	uint64_t at = looks.last.taken_ns;

	return (looks.refused || !files.opened ||
		(at != 0 && clock_mono_ns() - at < PRESSURE_GAP_MS * NS_PER_MS));
}

static bool
start_looker(size_t stack)
{
	pthread_attr_t attr;
	pthread_t t;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = stack != 0 ? pthread_attr_setstacksize(&attr, stack) : 0;
	err = err == 0 ? pthread_create(&t, &attr, looker, NULL) : err;
	pthread_attr_destroy(&attr);
	return (err == 0);
}

/* Under the lock.  Detached: it sleeps when the process ends.  A sanitizer may refuse a small
 * stack. */
static void
start_thread(void)
{
	sigset_t all, old;

	if (looks.running || !files.opened)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the main thread */
	looks.running = start_looker(STACK_SIZE) || start_looker(0);
	looks.refused = !looks.running;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void
pressure_ask(void)
{
	pthread_mutex_lock(&looks.lock);
	if (!looks.wanted && !is_fresh()) {
		looks.wanted = true;
		start_thread();
		pthread_cond_signal(&looks.asked);
	}
	pthread_mutex_unlock(&looks.lock);
}

bool
pressure_fresh(void)
{
	bool fresh;

	pthread_mutex_lock(&looks.lock);
	fresh = is_fresh();
	pthread_mutex_unlock(&looks.lock);
	return (fresh);
}

void
pressure_get(struct pressure *p)
{
	pthread_mutex_lock(&looks.lock);
	*p = looks.last;
	pthread_mutex_unlock(&looks.lock);
}

void
pressure_first(struct pressure *p)
{
	pthread_mutex_lock(&looks.lock);
	*p = looks.first;
	pthread_mutex_unlock(&looks.lock);
}

/* ---- start */

void
pressure_on_look(pressure_seen *fn, void *arg)
{
	pthread_mutex_lock(&seen.lock);
	seen.fn = fn;
	seen.arg = arg;
	pthread_mutex_unlock(&seen.lock);
	pthread_mutex_lock(&looks.lock);
	start_thread();
	pthread_mutex_unlock(&looks.lock);
}

static int
open_proc(const char *path)
{
	return (open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
}

/* The first source of refaults that has them; it stays open. */
static void
try_refaults(int fd, enum pressure_scope of)
{
	char text[TEXT_MAX];
	uint64_t pages;

	if (fd >= 0 && files.refaults < 0 && pressure_parse_refaults(read_file(fd, text), &pages)) {
		files.refaults = fd;
		files.refaults_of = of;
	} else if (fd >= 0) {
		close(fd);
	}
}

/* The root of v2 has no type.  Its pressure is the machine's. */
static int
open_psi(const struct cgroup *c)
{
	int type = cgroup_open(c, "cgroup.type");

	if (type < 0)
		return (-1);
	close(type);
	return (cgroup_open(c, "memory.pressure"));
}

static void
open_cgroup(enum cgroup_kind kind, const char *used)
{
	struct cgroup c;

	if (!cgroup_find(kind, &c))
		return;
	if (kind == CGROUP_V2)
		files.psi[PRESSURE_CGROUP] = open_psi(&c);
	if (files.used < 0)
		files.used = cgroup_open(&c, used);
	try_refaults(cgroup_open(&c, "memory.stat"), PRESSURE_CGROUP);
}

void
pressure_open(void)
{
	if (files.opened)
		return;
	files.psi[PRESSURE_MACHINE] = open_proc("/proc/pressure/memory");
	open_cgroup(CGROUP_V1, "memory.usage_in_bytes");
	open_cgroup(CGROUP_V2, "memory.current");
	try_refaults(open_proc("/proc/vmstat"), PRESSURE_MACHINE);
	files.opened = true;
	pressure_look();
}
