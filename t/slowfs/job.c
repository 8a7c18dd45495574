#include "job.h"
#include "caller.h"
#include "slowfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WATCH_MS 100 /* how long a killed program may wait for its end */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* of all below, and of the rules */
static pthread_cond_t submitted = PTHREAD_COND_INITIALIZER; /* wakes spindles */
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;  /* wakes spindles whose job hung */
static pthread_cond_t suspected = PTHREAD_COND_INITIALIZER; /* wakes the watch */

static struct job_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
static struct job_list serving = TAILQ_HEAD_INITIALIZER(serving);
static struct job_list hung = TAILQ_HEAD_INITIALIZER(hung);
static struct job_list *const lists[] = { &waiting, &serving, &hung, NULL };

static uint64_t submissions, jobs_taken;
static uint64_t counted[KINDS];
static bool stopping;

/* ---------------------------------------------------------------- lists; the caller holds the
 * lock */

static void
move(struct job *j, struct job_list *to)
{
	if (j->in != NULL)
		TAILQ_REMOVE(j->in, j, link);
	if (to != NULL)
		TAILQ_INSERT_TAIL(to, j, link);
	j->in = to;
}

static void
job_free(struct job *j)
{
	free(j->data);
	free(j);
}

/* Answers before its time.  A spindle that is busy with it stays busy, and frees it. */
static void
end(struct job *j, int err)
{
	fuse_req_t req = j->req;

	j->req = NULL;
	if (j->in != &serving && !j->on_spindle) {
		move(j, NULL);
		job_free(j);
	}
	if (req != NULL)
		fuse_reply_err(req, err);
}

static struct job *
find(bool (*is)(const struct job *, const void *), const void *what)
{
	struct job_list *const *l;
	struct job *j;

	for (l = lists; *l != NULL; l++) {
		TAILQ_FOREACH(j, *l, link)
		{
			if (j->req != NULL && is(j, what))
				return (j);
		}
	}
	return (NULL);
}

static bool
has_req(const struct job *j, const void *what)
{
	return (j->req == what);
}

static bool
has_id(const struct job *j, const void *what)
{
	return (j->id == *(const uint64_t *)what);
}

static struct outcome
judge(const struct job *j)
{
	struct question q = { .is_read = j->kind == READ,
		.direct = (j->fi.flags & O_DIRECT) != 0,
		.off = j->off,
		.size = j->size };
	char path[PATH_MAX];

	if (j->req == NULL || rules_count() == 0)
		return ((struct outcome){ .effect = PASS });
	q.path = j->node->path;
	if (j->kind == LOOKUP && path_join(path, j->node->path, j->name) == 0)
		q.path = path;
	return (rules_judge(&q));
}

/* ---------------------------------------------------------------- submission */

struct job *
job_new(fuse_req_t req, fuse_ino_t ino, enum kind kind, double ms, void (*answer)(struct job *),
    const char *name)
{
	struct job *j;

	j = calloc(1, sizeof(*j) + strlen(name) + 1);
	if (j == NULL) {
		fuse_reply_err(req, ENOMEM);
		return (NULL);
	}
	j->req = req;
	j->caller = fuse_req_ctx(req)->pid;
	j->node = node_of(ino);
	j->kind = kind;
	j->ms = ms;
	j->answer = answer;
	strcpy(j->name, name);
	return (j);
}

/* By request, not by job: the job may be gone already, the request is kept for this call. */
static void
on_interrupt(fuse_req_t req, void *data)
{
	struct job *j;

	pthread_mutex_lock(&lock);
	if ((j = find(has_req, req)) != NULL) {
		j->signalled = true;
		pthread_cond_signal(&suspected);
	}
	pthread_mutex_unlock(&lock);
}

static bool
submit(struct job *j, struct job_list *to)
{
	bool ok;

	/* Before another thread can answer it.  Interrupts come in this thread only. */
	fuse_req_interrupt_func(j->req, on_interrupt, NULL);
	j->signalled = fuse_req_interrupted(j->req) != 0;
	pthread_mutex_lock(&lock);
	ok = !stopping;
	j->id = submissions++;
	if (ok)
		move(j, to);
	else
		end(j, EIO);
	if (ok && j->signalled)
		pthread_cond_signal(&suspected);
	pthread_mutex_unlock(&lock);
	return (ok);
}

void
job_submit(struct job *j)
{
	if (submit(j, &waiting))
		pthread_cond_signal(&submitted);
}

/* ---------------------------------------------------------------- the end of a job */

static void
answer(struct job *j, const struct outcome *o)
{
	__atomic_add_fetch(&counted[j->kind], 1, __ATOMIC_RELAXED);
	if (o->effect == FAIL)
		fuse_reply_err(j->req, o->err);
	else
		j->answer(j);
	job_free(j);
}

/* The rules are asked at the moment when a request would be answered, so that a rule holds for all
 * that were not answered when it was given. */
static void
finish(struct job *j, bool on_spindle)
{
	struct outcome o;

	pthread_mutex_lock(&lock);
	while ((o = judge(j)).effect == HANG) {
		move(j, &hung);
		j->caller_group = caller_group(j->caller);
		pthread_cond_signal(&suspected);
		if (!o.keeps_spindle || !on_spindle) {
			pthread_mutex_unlock(&lock);
			return;
		}
		j->on_spindle = true;
		while (j->on_spindle)
			pthread_cond_wait(&released, &lock);
	}
	move(j, NULL);
	pthread_mutex_unlock(&lock);
	if (j->req != NULL)
		answer(j, &o);
	else
		job_free(j);
}

void
job_submit_free(struct job *j)
{
	if (submit(j, &serving))
		finish(j, false);
}

/* ---------------------------------------------------------------- spindles */

static struct job *
take(uint64_t *serial)
{
	struct job *j;

	pthread_mutex_lock(&lock);
	while ((j = TAILQ_FIRST(&waiting)) == NULL)
		pthread_cond_wait(&submitted, &lock);
	move(j, &serving);
	*serial = jobs_taken++;
	pthread_mutex_unlock(&lock);
	return (j);
}

/* -1..1, the same for the same serial number in every run (splitmix64). */
static double
noise(uint64_t serial)
{
	uint64_t z = (serial + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	z ^= z >> 31;
	return ((double)(z >> 11) / (double)(1ull << 52) - 1.0);
}

static void
sleep_ms(double ms)
{
	struct timespec ts;

	ts.tv_sec = (time_t)(ms / 1000);
	ts.tv_nsec = (long)((ms - (double)ts.tv_sec * 1000) * 1e6);
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

static void *
spindle_main(void *arg)
{
	struct job *j;
	uint64_t serial;

	for (;;) {
		j = take(&serial);
		if (j->ms > 0)
			sleep_ms(j->ms * (1 + noise(serial) * opt.jitter / 100));
		finish(j, true);
	}
	return (arg);
}

/* ---------------------------------------------------------------- callers that were killed */

struct suspect {
	uint64_t id;
	pid_t caller, group;
};

/* Hung requests, and those whose caller got some signal.  A caller in another PID namespace is 0:
 * for such a one any signal counts as the end, as nobody could tell it later. */
static bool
is_suspect(const struct job *j)
{
	return (j->req != NULL && (j->signalled || (j->in == &hung && j->caller != 0)));
}

/* Waits until there is one; the array is the caller's.  NULL: no memory, try again. */
static struct suspect *
suspects(size_t *count)
{
	struct job_list *const *l;
	struct suspect *s;
	struct job *j;
	size_t n;

	pthread_mutex_lock(&lock);
	for (;;) {
		n = 0;
		for (l = lists; *l != NULL; l++)
			TAILQ_FOREACH(j, *l, link)
		n += is_suspect(j);
		if (n > 0)
			break;
		pthread_cond_wait(&suspected, &lock);
	}
	*count = 0;
	s = calloc(n, sizeof(*s));
	for (l = lists; *l != NULL && s != NULL; l++) {
		TAILQ_FOREACH(j, *l, link)
		{
			if (is_suspect(j))
				s[(*count)++] =
				    (struct suspect){ j->id, j->caller, j->caller_group };
		}
	}
	pthread_mutex_unlock(&lock);
	return (s);
}

static void *
watch_main(void *arg)
{
	struct suspect *s;
	struct job *j;
	size_t n, i;

	for (;;) {
		s = suspects(&n);
		for (i = 0; i < n; i++) {
			if (s[i].caller != 0 && !caller_killed(s[i].caller, s[i].group))
				continue;
			pthread_mutex_lock(&lock);
			if ((j = find(has_id, &s[i].id)) != NULL)
				end(j, EINTR);
			pthread_mutex_unlock(&lock);
		}
		free(s);
		sleep_ms(WATCH_MS);
	}
	return (arg);
}

int
spindles_start(int count)
{
	pthread_attr_t attr;
	pthread_t t;
	int i, err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	err = pthread_create(&t, &attr, watch_main, NULL);
	for (i = 0; i < count && err == 0; i++)
		err = pthread_create(&t, &attr, spindle_main, NULL);
	pthread_attr_destroy(&attr);
	return (-err);
}

/* ---------------------------------------------------------------- orders */

int
jobs_rule(const struct outcome *o, off_t from, const char *pattern)
{
	int err;

	pthread_mutex_lock(&lock);
	err = rule_add(o, from, pattern);
	pthread_mutex_unlock(&lock);
	return (err);
}

/* Those that keep a spindle are answered by it. */
static void
wake_spindles(void)
{
	struct job *j, *next;

	for (j = TAILQ_FIRST(&hung); j != NULL; j = next) {
		next = TAILQ_NEXT(j, link);
		if (!j->on_spindle)
			continue;
		j->on_spindle = false;
		move(j, &serving);
	}
	pthread_cond_broadcast(&released);
}

void
jobs_go(void)
{
	const struct outcome pass = { .effect = PASS };
	struct job *j;

	pthread_mutex_lock(&lock);
	rules_clear();
	wake_spindles();
	while ((j = TAILQ_FIRST(&hung)) != NULL) {
		move(j, NULL);
		pthread_mutex_unlock(&lock);
		answer(j, &pass);
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
}

void
jobs_stop(void)
{
	struct job_list *const *l;
	struct job *j, *next;

	pthread_mutex_lock(&lock);
	stopping = true;
	rules_clear();
	wake_spindles();
	for (l = lists; *l != NULL; l++) {
		for (j = TAILQ_FIRST(*l); j != NULL; j = next) {
			next = TAILQ_NEXT(j, link);
			end(j, EIO);
		}
	}
	pthread_mutex_unlock(&lock);
}

bool
jobs_can_hang(void)
{
	bool can;

	pthread_mutex_lock(&lock);
	can = rules_hang() || !TAILQ_EMPTY(&hung);
	pthread_mutex_unlock(&lock);
	return (can);
}

static int
length(const struct job_list *l)
{
	const struct job *j;
	int n = 0;

	TAILQ_FOREACH(j, l, link)
	n += j->req != NULL;
	return (n);
}

void
jobs_counters(char *buf, size_t size, bool now)
{
	unsigned long long n[KINDS];
	int i, used;

	for (i = 0; i < KINDS; i++)
		n[i] = __atomic_load_n(&counted[i], __ATOMIC_RELAXED);
	used = snprintf(buf, size, "lookups=%llu getattrs=%llu opens=%llu reads=%llu writes=%llu",
	    n[LOOKUP], n[GETATTR], n[OPEN], n[READ], n[WRITE]);
	if (!now)
		return;
	pthread_mutex_lock(&lock);
	snprintf(buf + used, size - (size_t)used, " waiting=%d serving=%d hanging=%d rules=%d",
	    length(&waiting), length(&serving), length(&hung), rules_count());
	pthread_mutex_unlock(&lock);
}
