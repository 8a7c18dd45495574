/* base/match.c -- PCRE2 in two calls. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/match.h"
#include "base/must.h"

/* PCRE2's own limit does not bound the time: it starts again at each byte where a match may begin,
 * and JIT does not count the work in a loop.  Measured with /x.*y.*z/ and 64 kB of "x": 25 s.  So
 * each item of a pattern calls back (20 to 60 ns more for a usual condition), and all of them
 * together may take CPU_MAX_NS. */
#define CPU_MAX_NS (4 * NS_PER_MS)
/* calls between two checks of the clock; between two calls there are at most a few bytes of work
 * for each byte of subject */
#define CALLS_PER_LOOK 64u
#define JIT_STACK_MIN  (32 * 1024)
#define JIT_STACK_MAX  (512 * 1024)
#define HEAP_LIMIT_KIB 1024

#define NEED_MAX 32u

/* Most patterns begin with plain text: "^/static/", "\\.php$".  A subject without that text does
 * not match, and comparing the text costs 4 to 20 ns, not 100. */
struct match {
	pcre2_code *code;
	bool at_start; /* the subject must begin with it */
	size_t nneed;  /* 0: nothing is known */
	char need[NEED_MAX];
};

/* Memory of a run.  One per thread, made at its first run and freed when the thread ends: making
 * it for each run costs more than most matches. */
struct scratch {
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	unsigned calls; /* of this run */
	/* time of the next check; processor time at the first check */
	uint64_t look_ns, cpu_ns;
};

static __thread struct scratch *scratch;
static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void
scratch_free(void *arg)
{
	struct scratch *s = arg;

	pcre2_match_data_free(s->data);
	pcre2_match_context_free(s->context);
	pcre2_jit_stack_free(s->stack);
	free(s);
	scratch = NULL;
}

/* The destructor of a key does not run for the thread that leaves main(). */
static void
scratch_free_last(void)
{
	if (scratch != NULL)
		scratch_free(scratch);
}

static void
scratch_start(void)
{
	must(pthread_key_create(&scratch_key, scratch_free) == 0);
	atexit(scratch_free_last);
}

/* ---------------------------------------------------------------- the limit */

/* Processor time, because a busy machine must not refuse a request.  Reading it is a system
 * call, so it is read only when as much wall clock time has passed. */
static bool
time_is_spent(struct scratch *s)
{
	uint64_t now = clock_mono_ns(), used;

	if (s->calls == CALLS_PER_LOOK) {
		s->cpu_ns = clock_cpu_ns();
		s->look_ns = now + CPU_MAX_NS;
	}
	if (now < s->look_ns)
		return (false);
	used = clock_cpu_ns() - s->cpu_ns;
	s->look_ns = now + CPU_MAX_NS - (used < CPU_MAX_NS ? used : 0);
	return (used >= CPU_MAX_NS);
}

static int
called_back(pcre2_callout_block *block, void *arg)
{
	struct scratch *s = arg;

	(void)block;
	return (++s->calls % CALLS_PER_LOOK == 0 && time_is_spent(s) ? PCRE2_ERROR_CALLOUT : 0);
}

/* ---------------------------------------------------------------- scratch */

static struct scratch *
scratch_new(void)
{
	struct scratch *s;

	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return (NULL);
	s->data = pcre2_match_data_create(MATCH_CAPTURES, NULL);
	s->context = pcre2_match_context_create(NULL);
	if (s->data == NULL || s->context == NULL) {
		scratch_free(s);
		return (NULL);
	}
	pcre2_set_heap_limit(s->context, HEAP_LIMIT_KIB);
	pcre2_set_callout(s->context, called_back, s);
	s->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
	/* without it JIT code runs on 32 KiB of the thread's own stack */
	if (s->stack != NULL)
		pcre2_jit_stack_assign(s->context, NULL, s->stack);
	return (s);
}

static struct scratch *
scratch_get(void)
{
	if (scratch == NULL) {
		pthread_once(&scratch_once, scratch_start);
		scratch = scratch_new();
		if (scratch != NULL)
			pthread_setspecific(scratch_key, scratch);
	}
	return (scratch);
}

/* ---------------------------------------------------------------- plain text */

/* The byte that this item of a pattern stands for, or -1; *rest moves past it. */
static int
plain_byte(struct text *rest)
{
	char c = text_take(rest, 1).p[0];

	if (c == '\\') {
		if (rest->n == 0 || isalnum((unsigned char)rest->p[0]))
			return (-1);
		return ((unsigned char)text_take(rest, 1).p[0]);
	}
	return (strchr(".^$*+?()[{|", c) == NULL ? (unsigned char)c : -1);
}

/* After "[": skips the class. */
static void
skip_class(struct text *rest)
{
	size_t i = 0;

	i += i < rest->n && rest->p[i] == '^';
	i += i < rest->n && rest->p[i] == ']';
	while (i < rest->n && rest->p[i] != ']')
		i += rest->p[i] == '\\' ? 2 : 1;
	(void)text_take(rest, i < rest->n ? i + 1 : rest->n);
}

/* True if the beginning of the pattern is a part of each match: no alternative at the top, no
 * option, no verb, nothing that this scan does not know. */
static bool
begins_each_match(struct text rest)
{
	unsigned depth = 0;

	while (rest.n != 0) {
		char c = text_take(&rest, 1).p[0];

		if (c == '\\' && rest.n != 0) {
			if (strchr("QEKN", text_take(&rest, 1).p[0]) != NULL)
				return (false);
		} else if (c == '[') {
			if (memmem(rest.p, rest.n, "[:", 2) != NULL)
				return (false);
			skip_class(&rest);
		} else if (c == '(') {
			if (text_starts(rest, TEXT("*")) ||
			    (text_starts(rest, TEXT("?")) && !text_starts(rest, TEXT("?:"))))
				return (false);
			depth++;
		} else if (c == ')')
			depth -= depth != 0;
		else if (c == '|' && depth == 0)
			return (false);
	}
	return (true);
}

static void
find_need(struct match *m, struct text pattern)
{
	int c;

	if (!begins_each_match(pattern))
		return;
	m->at_start = text_starts(pattern, TEXT("^"));
	if (m->at_start)
		(void)text_take(&pattern, 1);
	while (pattern.n != 0 && m->nneed < NEED_MAX) {
		c = plain_byte(&pattern);
		if (c < 0)
			break;
		if (pattern.n != 0 && strchr("?*{", pattern.p[0]) != NULL)
			break; /* it may be absent */
		m->need[m->nneed++] = (char)c;
	}
}

/* False: the subject lacks a text that each match has, so the pattern cannot match. */
static bool
may_match(const struct match *m, struct text subject)
{
	if (m->nneed == 0)
		return (true);
	if (subject.n < m->nneed)
		return (false);
	if (m->at_start)
		return (memcmp(subject.p, m->need, m->nneed) == 0);
	return (memmem(subject.p, subject.n, m->need, m->nneed) != NULL);
}

struct match *
match_new(const char *pattern, bool caseless, char *err, size_t errsize)
{
	PCRE2_UCHAR msg[128];
	struct match *m;
	PCRE2_SIZE at;
	int code;

	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		snprintf(err, errsize, "out of memory");
		return (NULL);
	}
	m->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
	    PCRE2_AUTO_CALLOUT | PCRE2_DOTALL | (caseless ? PCRE2_CASELESS : 0), &code, &at, NULL);
	if (m->code == NULL) {
		pcre2_get_error_message(code, msg, sizeof(msg));
		snprintf(err, errsize, "%s at character %zu", (char *)msg, (size_t)at);
		free(m);
		return (NULL);
	}
	if (!caseless)
		find_need(m, text_of(pattern));
	/* Fails where memory may not be writable and executable; the interpreter is used then. */
	pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE);
	return (m);
}

void
match_free(struct match *m)
{
	if (m == NULL)
		return;
	pcre2_code_free(m->code);
	free(m);
}

/* Number of captures, or a PCRE2 error. */
static int
match_exec(const struct match *m, struct text subject, struct scratch **sp)
{
	struct scratch *s;
	const char *p = subject.p != NULL ? subject.p : "";
	int n;

	if (!may_match(m, subject))
		return (PCRE2_ERROR_NOMATCH);
	s = scratch_get();
	if (s == NULL)
		return (PCRE2_ERROR_NOMEMORY);
	*sp = s;
	s->calls = 0;
	n = pcre2_match(m->code, (PCRE2_SPTR)p, subject.n, 0, 0, s->data, s->context);
	/* 0: the pattern has more groups than MATCH_CAPTURES */
	return (n == 0 ? MATCH_CAPTURES : n);
}

static enum match_result
result_of(int n)
{
	return (n > 0 ? MATCH_YES : n == PCRE2_ERROR_NOMATCH ? MATCH_NO : MATCH_FAILED);
}

enum match_result
match_run(const struct match *m, struct text subject)
{
	struct scratch *s;

	return (result_of(match_exec(m, subject, &s)));
}

enum match_result
match_capture(const struct match *m, struct text subject, struct text cap[MATCH_CAPTURES])
{
	struct scratch *s;
	PCRE2_SIZE *v;
	int n, i;

	n = match_exec(m, subject, &s);
	if (n < 0)
		return (result_of(n));
	v = pcre2_get_ovector_pointer(s->data);
	for (i = 0; i < MATCH_CAPTURES; i++) {
		cap[i] = TEXT_NONE;
		/* \K inside a lookahead can put the start after the end */
		if (i < n && v[2 * i] != PCRE2_UNSET && v[2 * i] <= v[2 * i + 1])
			cap[i] = (struct text){ (subject.p != NULL ? subject.p : "") + v[2 * i],
				v[2 * i + 1] - v[2 * i] };
	}
	return (MATCH_YES);
}
