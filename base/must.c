/* base/must.c -- the message of a process that detects its own error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/must.h"

/* Straight to stderr: the log's sink may be broken, and its thread would write after abort(). */
void
must_failed(const char *expr, const char *file, int line)
{
	char msg[512];
	ssize_t ignored;

	snprintf(msg, sizeof(msg), "level=alert ev=must.failed at=%s:%d expr=\"%s\"\n", file, line,
	    expr);
	ignored = write(STDERR_FILENO, msg, strlen(msg));
	(void)ignored;
	abort();
}
