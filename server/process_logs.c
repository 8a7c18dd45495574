/* server/process_logs.c -- the logs of the process: who opens them, HUP, the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/must.h"
#include "server/process_impl.h"

static void
error_sink(void *arg, struct text line)
{
	logfile_line(arg, line);
}

int
process_errorlog(struct process *ps, const struct conf *c)
{
	const char *path = c->errorlog != NULL && c->errorlog[0] != '\0' ? c->errorlog : NULL;
	int err = logfile_open(path, &ps->errorlog);

	if (err != 0) {
		fprintf(stderr, "accel-server: cannot open server.errorlog \"%s\": %s\n", path, strerror(-err));
		return (err);
	}
	log_set_sink(error_sink, ps->errorlog);
	return (0);
}

struct logfile *
process_accesslog(void *arg, const char *path)
{
	struct process *ps = arg;
	struct access_file *f = NULL;
	struct list *l, *tmp;
	int err;

	pthread_mutex_lock(&ps->lock);
	list_foreach_safe(l, tmp, &ps->access_files)
		if (strcmp(list_entry(l, struct access_file, link)->path, path) == 0)
			f = list_entry(l, struct access_file, link);
	if (f == NULL) {
		f = calloc(1, sizeof(*f) + strlen(path) + 1);
		must(f != NULL);
		strcpy(f->path, path);
		err = logfile_open(path, &f->log);
		if (err == 0) {
			list_add_tail(&ps->access_files, &f->link);
		} else {
			log_event(LOG_ERROR, NULL, "accesslog.unusable", LF_STR("path", path), LF_ERR("error", err));
			free(f);
			f = NULL;
		}
	}
	pthread_mutex_unlock(&ps->lock);
	return (f != NULL ? f->log : NULL);
}

static void
errorlog_failed(const char *path, int err)
{
	log_event(LOG_ERROR, NULL, "errorlog.reopen", LF_STR("path", path), LF_ERR("error", err), LF_STR("then", "writing to the old file"));
}

static void
accesslog_failed(const char *path, int err)
{
	log_event(LOG_ERROR, NULL, "accesslog.reopen", LF_STR("path", path), LF_ERR("error", err),
	    LF_STR("then", "writing to the old file"));
}

void
process_reopen_logs(struct process *ps)
{
	struct list *l, *tmp;

	logfile_reopen(ps->errorlog, errorlog_failed);
	pthread_mutex_lock(&ps->lock);
	list_foreach_safe(l, tmp, &ps->access_files) {
		struct access_file *f = list_entry(l, struct access_file, link);

		logfile_reopen(f->log, accesslog_failed);
	}
	pthread_mutex_unlock(&ps->lock);
	log_event(LOG_INFO, NULL, "logs.reopened", LF_STR("by", "HUP"));
}

void
process_close_logs(struct process *ps)
{
	struct list *l;

	while ((l = list_pop(&ps->access_files)) != NULL) {
		struct access_file *f = list_entry(l, struct access_file, link);

		logfile_close(f->log);
		free(f);
	}
	log_set_sink(NULL, NULL);
	if (ps->errorlog != NULL)
		logfile_close(ps->errorlog);
}
