#include "walk/run.h"

#include <errno.h>
#include <glib.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "walk/list.h"
#include "walk/report.h"
#include "walk/thread_group.h"
#include "walk/watch.h"

#define SAVE_NS    (2 * NS_PER_S)
#define NOFILE_MAX 65536
#define FDS_EACH   3 /* per thread: a file, and a directory twice */
#define FDS_OURS   32

struct run {
	const struct walk_conf *conf;
	struct watch watch;
	struct walk_queue *queue;
	struct walk_state *state; /* NULL: none, or given up */
	struct thread_group *threads;
	struct walk_list *list; /* NULL: a tree */
	size_t max_open;
	uint64_t save_ns;
	bool save_failed;
	unsigned stuck;
};

/* ---------------------------------------------------------------- reports */

/* Assumes that the unread part of a list has entries of the same length. */
static uint64_t
total(const struct run *r, const struct walk_counters *t)
{
	double part = r->list != NULL ? walk_list_part(r->list) : 0;

	if (walk_queue_all_read(r->queue))
		return (t->found);
	return (part > 0 ? (uint64_t)((double)t->found / part) : 0);
}

static void
measure(void *arg, struct walk_progress *p)
{
	struct run *r = arg;

	p->stuck = r->stuck;
	thread_group_counters(r->threads, &p->counters);
	if (r->list != NULL)
		walk_list_counters(r->list, &p->counters);
	p->total = total(r, &p->counters);
}

static void
summary(struct run *r, bool interrupted)
{
	const struct walk_conf *conf = r->conf;
	struct walk_progress p = watch_measure(&r->watch);
	GString *s = g_string_new(NULL);

	if (conf->summary != NULL)
		conf->summary(conf, &p, interrupted, s);
	else
		(conf->json ? walk_progress_json : walk_progress_summary)(&p, interrupted, s);
	if (!conf->json && conf->quiet)
		g_string_truncate(s, 0);
	watch_summary(&r->watch, s);
	g_string_free(s, TRUE);
}

/* ---------------------------------------------------------------- state */

static int
open_state(struct run *r)
{
	char *cwd = g_get_current_dir(), *why = NULL;
	GString *head = g_string_new(NULL);
	int err;

	walk_state_head(r->conf, cwd, head);
	err = walk_state_open(r->conf->state, head->str, &r->state, &why);
	if (err == -EBUSY)
		walk_message("state file %s: %s; use the options of that run, or remove the file",
		    r->conf->state, why);
	else if (err != 0)
		walk_message("state file %s: %s", r->conf->state, why);
	g_string_free(head, TRUE);
	g_free(cwd);
	g_free(why);
	if (err == 0)
		return (0);
	return (err == -EBUSY || err == -EPROTO ? EX_DATAERR
		: err == -EAGAIN                ? EX_TEMPFAIL
						: EX_CANTCREAT);
}

/* After an error the run goes on, and the next save tries again: the disk may have space then. */
static void
save(struct run *r)
{
	int err;

	if (r->state == NULL)
		return;
	err = walk_state_save(r->state);
	if (err != 0 && !r->save_failed)
		walk_message("state file %s: %s; its old contents stay, the next save tries again",
		    r->conf->state, g_strerror(-err));
	else if (err == 0 && r->save_failed)
		walk_message("state file %s: written again", r->conf->state);
	r->save_failed = err != 0;
}

static void
tick(void *arg)
{
	struct run *r = arg;
	uint64_t now = clock_mono_ns();

	r->stuck = thread_group_tick(r->threads);
	if (now >= r->save_ns) {
		save(r);
		r->save_ns = now + SAVE_NS;
	}
}

/* ---------------------------------------------------------------- start and end */

static size_t
raise_nofile(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return (FDS_OURS);
	r.rlim_cur = MAX(r.rlim_cur, MIN(r.rlim_max, NOFILE_MAX));
	setrlimit(RLIMIT_NOFILE, &r);
	getrlimit(RLIMIT_NOFILE, &r);
	return (MIN(r.rlim_cur, NOFILE_MAX));
}

/* Threads take at most half of the descriptors; the rest is for open directories. */
static size_t
share_nofile(struct walk_conf *conf)
{
	size_t n = raise_nofile(), left = n > FDS_OURS ? n - FDS_OURS : 0,
	       most = MAX(left / 2 / FDS_EACH, 1);

	if (conf->threads > most) {
		walk_message("using %u threads instead of %u: only %u files may be open (ulimit "
			     "-n)",
		    (unsigned)most, conf->threads, (unsigned)n);
		conf->threads = (unsigned)most;
	}
	return (left / 2 + 1);
}

static int
add_work(struct run *r)
{
	const char *bad;
	int err;

	r->queue = walk_queue_new(r->max_open, r->watch.over_fd);
	for (const char *const *root = r->conf->roots; root != NULL && *root != NULL; root++)
		walk_queue_add_dir(r->queue, walk_dir_new(NULL, *root));
	if (r->conf->list == NULL)
		return (0);
	err = walk_list_start(r->conf, r->queue, r->state, &r->list, &bad);
	if (err == 0)
		return (0);
	walk_message("%s: %s", bad, g_strerror(-err));
	walk_queue_free(&r->queue);
	return (EX_NOINPUT);
}

static int
prepare(struct run *r)
{
	int err = watch_open(&r->watch);

	if (err != 0) {
		walk_message("eventfd, signalfd: %s", g_strerror(-err));
		return (EX_OSERR);
	}
	r->save_ns = clock_mono_ns() + SAVE_NS;
	return (r->conf->state != NULL ? open_state(r) : 0);
}

/* Other threads may hang for ever, so this waits for nothing and frees nothing. */
static void
end_at_once(struct run *r, int signo)
{
	save(r);
	summary(r, true);
	_exit(128 + signo);
}

static int
end(struct run *r)
{
	int code = watch_measure(&r->watch).counters.errors > 0 ? 1 : 0;

	summary(r, false);
	thread_group_join(&r->threads);
	if (r->list != NULL)
		walk_list_join(&r->list);
	walk_queue_free(&r->queue);
	walk_state_remove(&r->state);
	watch_close(&r->watch);
	return (code);
}

int
walk_run(struct walk_conf *conf)
{
	struct run r = { .conf = conf, .max_open = share_nofile(conf) };
	int code, signo, err;

	r.watch = (struct watch){ conf->quiet, conf->verbose, measure, tick, &r };
	code = prepare(&r);
	if (code == 0)
		code = add_work(&r);
	if (code != 0) {
		walk_state_close(&r.state);
		return (code);
	}
	err = thread_group_start(conf, r.queue, r.state, &r.threads);
	if (err != 0) {
		walk_message("cannot start a thread: %s", g_strerror(-err));
		_exit(EX_OSERR); /* a thread may be reading the list */
	}
	signo = watch_wait(&r.watch);
	if (signo != 0)
		end_at_once(&r, signo);
	return (end(&r));
}
