/* fcgi-stat-accel/log.c -- writes the lines of base/log.h to a file of io/logfile.h. */

#include "base/log.h"
#include "fcgi-stat-accel/log.h"
#include "io/logfile.h"

static struct logfile *logfile; /* one for the process, like the sink of base/log.h */

int
accel_log_open(const char *path)
{
	int err = logfile_open(path, NULL, NULL, &logfile);

	if (err == 0)
		log_set_sink(logfile_line, logfile);
	return (err);
}

static void
reopen_failed(const char *path, int err)
{
	log_event(LOG_ERROR, NULL, "log.failed", LF_STR("path", path), LF_ERR("error", err),
	    LF_STR("then", "writing to the old file"));
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
