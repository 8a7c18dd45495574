#include "walk/progress.h"

#define BAR_MIN 10
#define BAR_MAX 40

void
walk_bytes(GString *s, double n)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	unsigned u = 0;

	for (; n >= 1000 && u + 1 < G_N_ELEMENTS(units); u++)
		n /= 1000;
	g_string_append_printf(s, "%.*f %s", u > 0 && n < 100, n, units[u]);
}

/* "0:07", "2:03:00" */
static void
duration(GString *s, double seconds)
{
	uint64_t n = (uint64_t)(seconds + 0.5);

	if (n >= 3600)
		g_string_append_printf(s, "%" G_GUINT64_FORMAT ":%02u:%02u", n / 3600,
		    (unsigned)(n / 60 % 60), (unsigned)(n % 60));
	else
		g_string_append_printf(s, "%u:%02u", (unsigned)(n / 60), (unsigned)(n % 60));
}

static void
bar(GString *s, unsigned width, double part)
{
	unsigned full = (unsigned)(part * width);

	g_string_append_c(s, '[');
	for (unsigned i = 0; i < width; i++)
		g_string_append_c(s, i < full ? '=' : i == full ? '>' : ' ');
	g_string_append(s, "]  ");
}

static void
put_count(GString *s, const struct walk_progress *p, double part)
{
	const uint64_t done = p->counters.finished;

	if (p->total > 0)
		g_string_append_printf(s, "%3u %%  %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT,
		    (unsigned)(part * 100), done, p->total);
	else
		g_string_append_printf(s,
		    "%" G_GUINT64_FORMAT " done, %" G_GUINT64_FORMAT " found so far", done,
		    p->counters.found);
}

static void
words(GString *s, const struct walk_progress *p, double part)
{
	const uint64_t done = p->counters.finished;

	put_count(s, p, part);
	g_string_append_printf(s, "  %.0f/s", p->rate);
	if (p->counters.bytes > 0) {
		g_string_append(s, "  ");
		walk_bytes(s, (double)p->counters.bytes);
	}
	if (p->total > done && p->rate > 0) {
		g_string_append(s, "  ETA ");
		duration(s, (double)(p->total - done) / p->rate);
	}
	if (p->counters.errors > 0)
		g_string_append_printf(s, "  %" G_GUINT64_FORMAT " errors", p->counters.errors);
	if (p->stuck > 0)
		g_string_append_printf(s, "  %u without answer", p->stuck);
}

void
walk_progress_line(const struct walk_progress *p, unsigned width, GString *s)
{
	double part = p->total > 0 ? MIN((double)p->counters.finished / (double)p->total, 1) : 0;
	GString *text = g_string_new(NULL);

	words(text, p, part);
	if (width >= text->len + BAR_MIN + 4 && p->total > 0)
		bar(s, MIN((unsigned)(width - text->len - 4), BAR_MAX), part);
	g_string_append(s, text->str);
	if (width > 0 && s->len > width)
		g_string_truncate(s, width);
	g_string_free(text, TRUE);
}

static void
if_any(GString *s, uint64_t n, const char *what)
{
	if (n > 0)
		g_string_append_printf(s, "; %" G_GUINT64_FORMAT " %s", n, what);
}

void
walk_progress_summary(const struct walk_progress *p, bool interrupted, GString *s)
{
	const struct walk_counters *t = &p->counters;
	const double seconds = MAX(p->seconds, 1e-6);

	g_string_append_printf(s,
	    "%s%" G_GUINT64_FORMAT " files, %" G_GUINT64_FORMAT " directories",
	    interrupted ? "interrupted: " : "", t->files, t->directories);
	if (t->bytes > 0) {
		g_string_append(s, ", ");
		walk_bytes(s, (double)t->bytes);
	}
	g_string_append_printf(s, " in %.*f s: %.0f files/s", p->seconds < 10 ? 2 : 0, p->seconds,
	    (double)t->files / seconds);
	if (t->bytes > 0) {
		g_string_append(s, ", ");
		walk_bytes(s, (double)t->bytes / seconds);
		g_string_append(s, "/s");
	}
	if_any(s, t->others, "links and other names");
	if_any(s, t->resumed, "done by an earlier run");
	if_any(s, t->excluded, "excluded");
	if_any(s, t->vanished, "vanished meanwhile");
	if_any(s, t->elsewhere, "other file systems left alone");
	if_any(s, t->again, "directories met again");
	if_any(s, p->stuck, "without answer");
	g_string_append_printf(s, "; %" G_GUINT64_FORMAT " errors\n", t->errors);
}

void
walk_progress_json(const struct walk_progress *p, bool interrupted, GString *s)
{
	char number[G_ASCII_DTOSTR_BUF_SIZE];

	g_string_append_c(s, '{');
#define T(name) g_string_append_printf(s, "\"" #name "\":%" G_GUINT64_FORMAT ",", p->counters.name);
	WALK_COUNTERS(T)
#undef T
	g_string_append_printf(s, "\"seconds\":%s,",
	    g_ascii_formatd(number, sizeof(number), "%.6f", p->seconds));
	g_string_append_printf(s, "\"files_per_second\":%s,",
	    g_ascii_formatd(number, sizeof(number), "%.1f",
		(double)p->counters.files / MAX(p->seconds, 1e-6)));
	g_string_append_printf(s, "\"without_answer\":%u,\"interrupted\":%s}\n", p->stuck,
	    interrupted ? "true" : "false");
}
