/* base/log.c -- key=value lines, built on the stack. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#define LOG_CUT         "...\n"
#define LOG_SITE_FIELDS 16 /* of a limited line, its count included */

struct line {
	size_t n;
	bool cut;
	char b[LOG_LINE_MAX];
};

/* Read-locked around each call of the sink.  When log_set_sink() returns, no thread uses the old
 * sink, and its owner may free it. */
static pthread_rwlock_t sink_lock = PTHREAD_RWLOCK_INITIALIZER;
static void (*sink)(void *, struct text);
static void *sink_arg;

static const char *const level_names[] = {
	[LOG_INFO] = "info",
	[LOG_WARN] = "warn",
	[LOG_ERROR] = "error",
	[LOG_ALERT] = "alert",
};

/* ---------------------------------------------------------------- the line */

/* Space for the cut mark is reserved, so that a cut line still ends with it. */
static void
line_add(struct line *l, const char *p, size_t n)
{
	size_t room = sizeof(l->b) - (sizeof(LOG_CUT) - 1) - l->n;

	if (l->cut)
		return;
	if (n > room) {
		for (n = room; n > 0 && ((unsigned char)p[n] & 0xc0) == 0x80; n--)
			; /* not inside a character */
		l->cut = true;
	}
	memcpy(l->b + l->n, p, n);
	l->n += n;
}

static void
line_str(struct line *l, const char *s)
{
	line_add(l, s, strlen(s));
}

static void
line_u64(struct line *l, uint64_t v)
{
	char tmp[20];

	line_add(l, tmp, text_put_u64(tmp, v));
}

static void
line_i64(struct line *l, int64_t v)
{
	if (v < 0)
		line_add(l, "-", 1);
	line_u64(l, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static bool
plain_char(char c)
{
	return (byte_is_alnum(c) || (c != '\0' && strchr("./:_-+@", c) != NULL));
}

static bool
plain(struct text t)
{
	size_t i;

	for (i = 0; i < t.n; i++)
		if (!plain_char(t.p[i]))
			return (false);
	return (t.n > 0);
}

static void
line_value(struct line *l, struct text t)
{
	static const char hex[] = "0123456789abcdef";
	struct text odd;
	unsigned char c;
	size_t i;

	if (plain(t)) {
		line_add(l, t.p, t.n);
		return;
	}
	line_add(l, "\"", 1);
	while (t.n > 0 && !l->cut) {
		struct text shown = utf8_quotable(&t, &odd);

		line_add(l, shown.p, shown.n);
		for (i = 0; i < odd.n; i++) {
			c = (unsigned char)odd.p[i];
			line_add(l, (const char[]){ '\\', 'x', hex[c >> 4], hex[c & 15] }, 4);
		}
	}
	line_add(l, "\"", 1);
}

static void
line_errno(struct line *l, int64_t err)
{
	char tmp[128];

	line_value(l, text_of(strerror_r((int)(err < 0 ? -err : err), tmp, sizeof(tmp))));
}

static void
line_stamp(struct line *l)
{
	uint64_t us = clock_wall_ns() / 1000;
	char tmp[48];

	snprintf(tmp, sizeof(tmp), "ts=%llu.%06llu", (unsigned long long)(us / 1000000),
	    (unsigned long long)(us % 1000000));
	line_str(l, tmp);
}

static void
line_field(struct line *l, const struct log_field *f)
{
	line_add(l, " ", 1);
	line_str(l, f->key);
	line_add(l, "=", 1);
	switch (f->kind) {
	case LF_KIND_STR: line_value(l, text_of(f->s)); break;
	case LF_KIND_TEXT: line_value(l, f->t); break;
	case LF_KIND_U64: line_u64(l, f->u); break;
	case LF_KIND_I64: line_i64(l, f->i); break;
	case LF_KIND_ERR: line_errno(l, f->i); break;
	}
}

static void
line_end(struct line *l)
{
	const char *end = l->cut ? LOG_CUT : "\n";

	memcpy(l->b + l->n, end, strlen(end));
	l->n += strlen(end);
}

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
			return; /* stderr is the last resort */
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

void
log_event_fields(enum log_level level, const char *id, const char *ev, const struct log_field *f,
    size_t n)
{
	struct line l;
	size_t i;

	l.n = 0;
	l.cut = false;
	line_stamp(&l);
	line_str(&l, " level=");
	line_str(&l, level_names[level]);
	line_str(&l, " ev=");
	line_str(&l, ev);
	if (id != NULL) {
		line_str(&l, " id=");
		line_value(&l, text_of(id));
	}
	for (i = 0; i < n; i++)
		line_field(&l, &f[i]);
	line_end(&l);
	log_raw((struct text){ l.b, l.n });
}

void
log_set_sink(void (*fn)(void *, struct text), void *arg)
{
	pthread_rwlock_wrlock(&sink_lock);
	sink = fn;
	sink_arg = arg;
	pthread_rwlock_unlock(&sink_lock);
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
			next = now_ms << USED_BITS | 1; /* a second begins with its first line */
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
