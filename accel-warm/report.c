#include "accel-warm/report.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* of standard error and all below */
static bool	shown;		/* the cursor stands behind a status line */
static unsigned told;

static void
put_line(const char *text)
{
	pthread_mutex_lock(&lock);
	fprintf(stderr, "%saccel-warm: %s\n", shown ? "\r\033[K" : "", text);
	shown = false;
	pthread_mutex_unlock(&lock);
}

void
walk_say(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = g_strdup_vprintf(format, args);
	va_end(args);
	put_line(text);
	g_free(text);
}

/* What a terminal would obey: ESC, and U+009B which is another, and what turns the direction. */
static bool
is_plain(gunichar c)
{
	return (g_unichar_isprint(c) && c != '"' && c != '\\');
}

void
walk_quote(const char *path, struct buf *out)
{
	const char *next;
	gunichar c;

	for (; *path != '\0'; path = next) {
		c = g_utf8_get_char_validated(path, -1);
		next = c < 0x110000 ? g_utf8_next_char(path) : path + 1;
		if (c < 0x110000 && is_plain(c))
			buf_add(out, path, (size_t)(next - path));
		else
			for (; path < next; path++)
				buf_printf(out, "\\x%02x", (guchar)*path);
	}
}

void
walk_trouble(const struct walk_dir *d, const char *name, const char *why)
{
	unsigned nth = __atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
	struct buf path, text;

	if (nth > WALK_TOLD_MAX)
		return;
	buf_init(&path, 0);
	buf_init(&text, 0);
	walk_dir_path(d, name, &path);
	walk_quote(path.p, &text);
	buf_char(&text, '\0');
	walk_say("\"%s\": %s", text.p, why);
	if (nth == WALK_TOLD_MAX)
		put_line("more of these are counted, not listed");
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
