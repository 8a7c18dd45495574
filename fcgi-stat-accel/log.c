/* fcgi-stat-accel/log.c -- writes the lines of base/log.h to a file of io/log/logfile.h. */

#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "base/option.h"
#include "fcgi-stat-accel/log.h"
#include "io/log/logfile.h"
#include "io/safe_open.h"
#include "io/start/std_fds.h"
#include "io/log/syslog.h"

static struct logfile *logfile; /* one for the process, like the sink of base/log.h */
static const char *program;
static bool to_syslog; /* standard error is /dev/null */

/* A message may have several lines.  The name before the first one is syslog's, too. */
static void
tell(struct text lines)
{
	struct text line;

	io_spawner_tell(lines);
	if (text_starts(lines, text_of(program)))
		text_take(&lines, strlen(program) + strlen(": "));
	while (text_next(&lines, '\n', &line))
		if (line.n > 0)
			syslog_message(line);
}

void
accel_log_begin(const char *name)
{
	if (!io_stderr_is_null())
		return;
	program = name;
	to_syslog = syslog_open(name) == 0;
	io_spawner_open();
	options_tell(tell);
	if (to_syslog)
		log_set_sink(syslog_line, NULL);
}

void
accel_log_started(void)
{
	io_spawner_close();
}

int
accel_log_open(const char *path)
{
	int err;

	if (path == NULL && to_syslog)
		return (0);
	err = logfile_open(path, NULL, NULL, &logfile);
	if (err == 0)
		log_set_sink(logfile_line, logfile);
	return (err);
}

static void
reopen_failed(const char *path, int err)
{
	log_event(LOG_ERROR, NULL, "log.failed", LF_STR("path", path), LF_ERR("error", err),
	    LF_STR("then", "writing to the old file"), LF_STR("do", safe_open_help(err)));
}

void
accel_log_reopen(void)
{
	logfile_reopen(logfile, reopen_failed);
	log_event(LOG_INFO, NULL, "log.reopen", LF_STR("by", "HUP"));
}

void
accel_log_close(void)
{
	log_set_sink(NULL, NULL);
	logfile_close(logfile);
	logfile = NULL;
}
