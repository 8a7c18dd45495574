#include "walk/report.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

/* protects standard error and everything below */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool shown; /* the cursor is after a status line */
static unsigned told;
static const char *program = "walk";

void
walk_report_as(const char *name)
{
	program = name;
}

static void
put_line(const char *text)
{
	pthread_mutex_lock(&lock);
	fprintf(stderr, "%s%s: %s\n", shown ? "\r\033[K" : "", program, text);
	shown = false;
	pthread_mutex_unlock(&lock);
}

void
walk_message(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	put_line(text);
	g_free(text);
}

void
walk_report_failure(const struct walk_dir *d, const char *name, const char *why)
{
	unsigned nth = __atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
	struct buf path, text;

	if (nth > WALK_FAILURES_SHOWN)
		return;
	buf_init(&path, 0);
	buf_init(&text, 0);
	walk_dir_path(d, name, &path);
	buf_log_quoted(&text, text_of(path.p));
	buf_char(&text, '\0');
	walk_message("\"%s\": %s", text.p, why);
	if (nth == WALK_FAILURES_SHOWN)
		put_line("further failures are counted, not listed");
	buf_free(&path);
	buf_free(&text);
}

void
walk_status_line(const char *text)
{
	pthread_mutex_lock(&lock);
	if (text != NULL || shown)
		fprintf(stderr, "\r%s\033[K", text != NULL ? text : "");
	shown = text != NULL;
	pthread_mutex_unlock(&lock);
}
