/* base/must.c -- the message of a process that detects its own error. */
#include <stdlib.h>
#include <unistd.h>
#include "base/log.h"
#include "base/must.h"

/* Straight to stderr: the log's sink may be broken, and its thread would write after abort(). */
void
must_failed(const char *expr, const char *file, int line)
{
	struct log_field f[] = { LF_STR("at", file), LF_U64("line", line), LF_STR("expr", expr) };
	char msg[LOG_LINE_MAX];
	ssize_t ignored;

	ignored = write(STDERR_FILENO, msg,
	    log_line(msg, &(struct log_entry){ LOG_ALERT, NULL, "must.failed", f, 3 }));
	(void)ignored;
	abort();
}
