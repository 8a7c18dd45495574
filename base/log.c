/* base/log.c -- where the lines go, and how many there are.  log_line.c has their form. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"

#define LOG_SITE_FIELDS 16 /* of a limited line, its count included */

/* Read-locked around each call of the sink.  When log_set_sink() returns, no thread uses the old
 * sink, and its owner may free it. */
static pthread_rwlock_t sink_lock = PTHREAD_RWLOCK_INITIALIZER;
static void (*sink)(void *, struct text);
static void *sink_arg;

/* ---------------------------------------------------------------- out */

static void
to_stderr(struct text line)
{
	ssize_t n;

	while (line.n > 0) {
		n = write(STDERR_FILENO, line.p, line.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* the message has no other place */
		text_take(&line, (size_t)n);
	}
}

void
log_raw(struct text line)
{
	int saved = errno; /* callers log while they handle an error */

	pthread_rwlock_rdlock(&sink_lock);
	if (sink != NULL)
		sink(sink_arg, line);
	else
		to_stderr(line);
	pthread_rwlock_unlock(&sink_lock);
	errno = saved;
}

static __thread struct buf *ear;

struct buf *
log_overhear(struct buf *said)
{
	struct buf *before = ear;

	ear = said;
	return (before);
}

static void
overhear(const struct log_entry *e)
{
	char line[LOG_LINE_MAX];

	buf_add(ear, line, log_line_event(line, e));
}

void
log_event_fields(enum log_level level, const char *id, const char *ev, const struct log_field *f,
    size_t n)
{
	const struct log_entry e = { level, id, ev, f, n };
	char line[LOG_LINE_MAX];

	if (ear != NULL && level != LOG_INFO)
		overhear(&e);
	log_raw((struct text){ line, log_line(line, &e) });
}

void
log_set_sink(void (*fn)(void *, struct text), void *arg)
{
	pthread_rwlock_wrlock(&sink_lock);
	sink = fn;
	sink_arg = arg;
	pthread_rwlock_unlock(&sink_lock);
}

bool
log_goes_to(const void *arg)
{
	bool same;

	pthread_rwlock_rdlock(&sink_lock);
	same = sink != NULL && sink_arg == arg;
	pthread_rwlock_unlock(&sink_lock);
	return (same);
}

/* ---------------------------------------------------------------- limits */

#define USED_BITS 16

static struct log_site *sites; /* atomic; grows at its front */
static uint64_t all_suppressed;

static void
site_list(struct log_site *site, const char *ev)
{
	const char *none = NULL;

	if (!__atomic_compare_exchange_n(&site->ev, &none, ev, false, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED))
		return;
	site->next = __atomic_load_n(&sites, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&sites, &site->next, site, true, __ATOMIC_RELEASE,
	    __ATOMIC_RELAXED))
		;
}

bool
log_permit(struct log_site *site, const char *ev, unsigned per_second)
{
	uint64_t now_ms = clock_mono_ns() / NS_PER_MS + 1; /* 0: no line yet */
	uint64_t used = __atomic_load_n(&site->used, __ATOMIC_RELAXED), next;

	if (__atomic_load_n(&site->ev, __ATOMIC_RELAXED) == NULL)
		site_list(site, ev);
	do {
		if (used == 0 || now_ms >= (used >> USED_BITS) + 1000)
			/* a new second begins with its first line */
			next = now_ms << USED_BITS | 1;
		else
			next = used + 1;
		if ((next & ((1u << USED_BITS) - 1)) > per_second) {
			__atomic_fetch_add(&site->suppressed, 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(&all_suppressed, 1, __ATOMIC_RELAXED);
			return (false);
		}
	} while (!__atomic_compare_exchange_n(&site->used, &used, next, true, __ATOMIC_RELAXED,
	    __ATOMIC_RELAXED));
	return (true);
}

void
log_site_fields(struct log_site *site, enum log_level level, const char *id,
    const struct log_field *f, size_t n)
{
	struct log_field more[LOG_SITE_FIELDS];
	uint64_t left_out = __atomic_exchange_n(&site->suppressed, 0, __ATOMIC_RELAXED);

	if (left_out == 0 || n >= LOG_SITE_FIELDS) {
		log_event_fields(level, id, site->ev, f, n);
		return;
	}
	memcpy(more, f, n * sizeof(*f));
	more[n] = LF_U64("suppressed", left_out);
	log_event_fields(level, id, site->ev, more, n + 1);
}

uint64_t
log_suppressed(void)
{
	return (__atomic_load_n(&all_suppressed, __ATOMIC_RELAXED));
}

void
log_suppressed_flush(void)
{
	struct log_site *site;
	uint64_t n;

	for (site = __atomic_load_n(&sites, __ATOMIC_ACQUIRE); site != NULL; site = site->next) {
		__atomic_store_n(&site->used, 0, __ATOMIC_RELAXED);
		n = __atomic_exchange_n(&site->suppressed, 0, __ATOMIC_RELAXED);
		if (n != 0)
			log_event(LOG_WARN, NULL, "log.suppressed", LF_STR("of", site->ev),
			    LF_U64("lines", n));
	}
}
