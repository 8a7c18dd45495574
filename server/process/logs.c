/* server/process/logs.c -- the logs of the process: opening, HUP, closing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"
#include "io/log/journal.h"
#include "io/safe_open.h"
#include "server/config/check/log_names.h"
#include "server/config/resources.h"
#include "server/process/impl.h"

#define EARLY_MAX (64u << 10)

/* Opens with the rights of the user who started the server; with -1 there is no helper. */
static int
log_open(struct process *ps, const char *path, struct logfile **log)
{
	return (logfile_open(path, ps->helper != NULL ? helper_open_log : NULL, ps->helper, log));
}

void
process_say(enum log_level level, const char *ev, struct text all)
{
	struct buf *said = log_overhear(NULL);
	struct text line;

	while (text_next(&all, '\n', &line)) {
		if (line.n == 0)
			continue;
		log_event(level, NULL, ev, LF_TEXT("what", line));
		if (said != NULL) {
			buf_text(said, line);
			buf_char(said, '\n');
		}
	}
	log_overhear(said);
}

const char *
process_open_help(int err)
{
	switch (err) {
	case -EPIPE: return (HELPER_LOST " the file is opened when it is back");
	case -EMFILE:
	case -ENFILE: return ("raise server.max-fds or lower server.max-connections");
	case -ETIMEDOUT: return ("the disk does not answer");
	}
	return (safe_open_help(err));
}

static void
early_sink(void *early, struct text line)
{
	buf_text(early, line);
}

void
process_log_form(const struct process *ps, const struct conf *c)
{
	log_set_json(strcmp(c->errorlog_format, "json") == 0 && !ps->journal);
}

void
process_early_lines(struct process *ps, const struct conf *c)
{
	ps->journal = log_name_error(c) == NULL && journal_open() >= 0;
	process_log_form(ps, c);
	buf_init(&ps->early, EARLY_MAX);
	log_set_sink(early_sink, &ps->early);
}

static void
late_lines(struct process *ps)
{
	if (ps->errorlog != NULL)
		logfile_line(ps->errorlog, buf_as_text(&ps->early));
	else
		fprintf(stderr, "%.*s", (int)ps->early.n, ps->early.n != 0 ? ps->early.p : "");
	buf_free(&ps->early);
}

int
process_errorlog(struct process *ps, const struct conf *c)
{
	const char *name = log_name_error(c);
	int err = log_open(ps, name, &ps->errorlog);
	char why[SAFE_OPEN_FAULT];

	if (err != 0) {
		late_lines(ps);
		if (err != -ECANCELED)
			fprintf(stderr, "accel-server: cannot open server.errorlog \"%s\": %s\n",
			    name, safe_open_fault(err, why));
		return (err);
	}
	log_set_sink(logfile_line, ps->errorlog);
	late_lines(ps);
	return (0);
}

void
process_say_failed(const struct process *ps)
{
	const char *name = ps->errorlog != NULL ? logfile_path(ps->errorlog) : NULL;
	const char *where = "the log on standard error says why";

	if (name != NULL && name[0] == LOGFILE_SYSLOG)
		where = "the system's log says why";
	else if (name != NULL)
		where = "the error log says why: ";
	else if (ps->journal)
		where = "the journal says why";
	fprintf(stderr, "accel-server: not started; %s%s\n", where,
	    name != NULL && name[0] != LOGFILE_SYSLOG ? name : "");
}

int
process_accesslog(void *arg, const char *path, struct logfile **log)
{
	struct process *ps = arg;
	struct access_file *f;
	int err;

	list_each(f, &ps->access_files, link)
		if (strcmp(f->path, path) == 0) {
			*log = f->log;
			return (0);
		}
	f = calloc(1, sizeof(*f) + strlen(path) + 1);
	err = -ENOMEM;
	if (f != NULL) {
		strcpy(f->path, path);
		err = log_open(ps, path, &f->log);
	}
	if (err == 0) {
		list_add_tail(&ps->access_files, &f->link);
		*log = f->log;
		return (0);
	}
	if (err != -ECANCELED)
		log_event(LOG_ERROR, NULL, "accesslog.unusable", LF_STR("path", path),
		    LF_ERR("error", err), LF_STR("do", process_open_help(err)));
	free(f);
	return (err);
}

static void
accesslog_close(struct access_file *f)
{
	list_del(&f->link);
	logfile_close(f->log);
	free(f);
}

static bool
is_named(struct process *ps, const char *path)
{
	struct generation *g;

	list_each(g, &ps->generations, link)
		if (resources_log(g->resources, path) != NULL)
			return (true);
	return (false);
}

void
process_drop_accesslogs(struct process *ps)
{
	struct access_file *f;

	list_each(f, &ps->access_files, link)
		if (!is_named(ps, f->path))
			logfile_stop(f->log);
	list_each(f, &ps->access_files, link)
		if (!is_named(ps, f->path))
			accesslog_close(f);
}

/* Set by the thread of a log: there was no helper to reopen it. */
static bool owed;

static void
note_failure(int err)
{
	if (err == -EPIPE)
		__atomic_store_n(&owed, true, __ATOMIC_RELAXED);
}

bool
process_logs_are_owed(void)
{
	return (__atomic_exchange_n(&owed, false, __ATOMIC_RELAXED));
}

static void
errorlog_failed(const char *path, int err)
{
	note_failure(err);
	log_event(LOG_ERROR, NULL, "errorlog.reopen", LF_STR("path", path), LF_ERR("error", err),
	    LF_STR("then", "writing to the old file until the next HUP"),
	    LF_STR("do", process_open_help(err)));
}

static void
accesslog_failed(const char *path, int err)
{
	note_failure(err);
	log_event(LOG_ERROR, NULL, "accesslog.reopen", LF_STR("path", path), LF_ERR("error", err),
	    LF_STR("then", "writing to the old file until the next HUP"),
	    LF_STR("do", process_open_help(err)));
}

void
process_reopen_logs(struct process *ps)
{
	struct access_file *f;

	logfile_reopen(ps->errorlog, errorlog_failed);
	list_each(f, &ps->access_files, link)
		logfile_reopen(f->log, accesslog_failed);
	log_event(LOG_INFO, NULL, "logs.reopened",
	    LF_STR("by", process_control_waits(ps, CONTROL_REOPEN) ? "ctl" : "HUP"));
}

/* ---- ctl reopen waits for the threads of the logs */

#define REOPEN_LOOK_MS 5

static bool
is_reopened(struct logfile *log, const char *path, struct buf *failed)
{
	int err = 0;

	if (!logfile_reopened(log, &err))
		return (false);
	if (err != 0)
		buf_printf(failed, "%s: %s: writing to the old file; %s\n", path, strerror(-err),
		    process_open_help(err));
	return (true);
}

static bool
all_reopened(const struct process *ps, struct buf *failed)
{
	const struct conf *c = config_global(process_newest(ps)->config);
	struct access_file *f;

	if (!is_reopened(ps->errorlog, c->errorlog != NULL ? c->errorlog : "error log", failed))
		return (false);
	list_each(f, &ps->access_files, link)
		if (!is_reopened(f->log, f->path, failed))
			return (false);
	return (true);
}

/* One that waits for the next reopening sees the end of this one, too: ps->reopen is done first. */
void
process_reopen_tick(struct process *ps, int *timeout_ms)
{
	struct buf failed;

	if (ps->reopen || !process_control_waits(ps, CONTROL_REOPEN))
		return;
	buf_init(&failed, 0);
	if (all_reopened(ps, &failed)) {
		ps->control.turn[CONTROL_REOPEN]++;
		process_control_done(ps, CONTROL_REOPEN, failed.n == 0 ? 0 : EX_CANTCREAT,
		    buf_as_text(&failed));
	} else if (*timeout_ms < 0 || *timeout_ms > REOPEN_LOOK_MS)
		*timeout_ms = REOPEN_LOOK_MS;
	buf_free(&failed);
}

void
process_close_logs(struct process *ps)
{
	struct access_file *f;

	list_each(f, &ps->access_files, link)
		logfile_stop(f->log);
	list_each(f, &ps->access_files, link)
		accesslog_close(f);
	log_set_sink(NULL, NULL);
	if (ps->errorlog != NULL)
		logfile_close(ps->errorlog);
}
