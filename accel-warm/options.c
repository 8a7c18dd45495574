#include "accel-warm/options.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/quantity.h"
#include "base/short_values.h"
#include "accel-warm/manual.h"
#include "accel-warm/report.h"
#include "accel-warm/touch.h"
#include "fcgi-stat-accel/warm/words.h"

#define THREADS_DEFAULT 32
#define THREADS_MAX	1024
#define NUMBER_MAX	(1ull << 50)	/* of bytes, and of files a second */
/* What the kernel reads ahead on the first read of a file: a server that reads less has it, one that reads more has
 * the rest under way. */
#define WARM_DEFAULT	"read:128k"

static struct {
	char	*warm, *threads, *rate, *bandwidth, *list, *below, *state, *manual;
	char   **include, **exclude, **rest;
	gboolean nul, urls, follow, one_fs, json, quiet, verbose, version;
} opt;

static gboolean
on_manual(const char *name, const char *page, void *data, GError **error)
{
	g_free(opt.manual);
	opt.manual = g_strdup(page != NULL ? page : "text");
	return (TRUE);
}

static const GOptionEntry entries[] = {
	{ "warm", 'w', 0, G_OPTION_ARG_STRING, &opt.warm,
	    "What of a file: its inode, an open, its first bytes, all of it (default " WARM_DEFAULT ")", "stat|open|read:BYTES|read:all" },
	{ "list", 'l', 0, G_OPTION_ARG_FILENAME, &opt.list,
	    "Files whose paths stand in FILE, one a line; - is standard input", "FILE" },
	{ "null", '0', 0, G_OPTION_ARG_NONE, &opt.nul, "Paths in the list end in a NUL byte, as find -print0 writes them", NULL },
	{ "root", 'r', 0, G_OPTION_ARG_FILENAME, &opt.below, "Paths in the list are below DIR, with or without a slash before them", "DIR" },
	{ "urls", 'u', 0, G_OPTION_ARG_NONE, &opt.urls,
	    "Entries of the list are URLs or their paths: without host and query, percent-decoded; needs --root", NULL },
	{ "threads", 'j', 0, G_OPTION_ARG_STRING, &opt.threads, "Threads at work (default 32)", "N" },
	{ "rate", 0, 0, G_OPTION_ARG_STRING, &opt.rate, "At most N files a second; suffixes k m g", "N" },
	{ "bandwidth", 0, 0, G_OPTION_ARG_STRING, &opt.bandwidth, "At most BYTES read a second; suffixes k m g", "BYTES" },
	{ "include", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.include, "Only files whose name is like GLOB; may be repeated", "GLOB" },
	{ "exclude", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &opt.exclude,
	    "No files and directories whose name is like GLOB; may be repeated", "GLOB" },
	{ "one-file-system", 'x', 0, G_OPTION_ARG_NONE, &opt.one_fs, "Leave alone what is mounted below PATH", NULL },
	{ "follow", 'L', 0, G_OPTION_ARG_NONE, &opt.follow, "Follow symbolic links; each directory is walked once", NULL },
	{ "state", 's', 0, G_OPTION_ARG_FILENAME, &opt.state,
	    "Keep in FILE what is done: the same command goes on there after it was killed", "FILE" },
	{ "json", 0, 0, G_OPTION_ARG_NONE, &opt.json, "Print the summary as JSON", NULL },
	{ "quiet", 'q', 0, G_OPTION_ARG_NONE, &opt.quiet, "Print no progress bar and no summary", NULL },
	{ "verbose", 'v', 0, G_OPTION_ARG_NONE, &opt.verbose, "Tell every ten seconds how far it is, if that is no terminal", NULL },
	{ "manual", 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, (void *)on_manual,
	    "Print the manual page, as text or for man(1)", "text|roff" },
	{ "version", 'V', 0, G_OPTION_ARG_NONE, &opt.version, "Print the version", NULL },
	{ G_OPTION_REMAINING, 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_FILENAME_ARRAY, &opt.rest, NULL, NULL },
	{ NULL }
};

static const char description[] =
    "Walks trees, or takes paths from a list, with many threads, and makes every file warm.\n"
    "\n"
    "    accel-warm /srv/www\n"
    "    accel-warm --warm=read:all --state /var/tmp/warm.state /mnt/restored\n"
    "    accel-warm --list urls.txt --urls --root /srv/www\n"
    "    find /srv/www -newer stamp -type f -print0 | accel-warm -0 -l -\n";

/* ---------------------------------------------------------------- values */

static bool
choose_rate(const char *name, const char *text, uint64_t *n)
{
	if (text == NULL || quantity_read(text, 1, NUMBER_MAX, n))
		return (true);
	walk_say("--%s: expected a number of at least 1, with or without k, m or g behind it, got \"%s\"", name, text);
	return (false);
}

static bool
choose_threads(unsigned *threads)
{
	guint64 n = THREADS_DEFAULT;

	if (opt.threads != NULL && !g_ascii_string_to_unsigned(opt.threads, 10, 1, THREADS_MAX, &n, NULL)) {
		walk_say("--threads: expected 1 to %d, got \"%s\"", THREADS_MAX, opt.threads);
		return (false);
	}
	*threads = (unsigned)n;
	return (true);
}

static bool
choose_warm(struct walk_conf *conf)
{
	const char *text = opt.warm != NULL ? opt.warm : WARM_DEFAULT;

	if (warm_words_read(text, &conf->how, &conf->before) && conf->before > 0)
		return (true);
	walk_say("--warm: expected " WARM_WORDS ", got \"%s\"", text);
	return (false);
}

/* What does not go together. */
static const char *
contradiction(void)
{
	if (opt.rest == NULL && opt.list == NULL)
		return ("expected PATH or --list FILE, got none");
	if (opt.rest != NULL && opt.list != NULL)
		return ("PATH or --list, not both");
	if (opt.list == NULL && (opt.below != NULL || opt.nul || opt.urls))
		return ("--root, --null and --urls are for a --list");
	if (opt.urls && opt.below == NULL)
		return ("--urls needs --root: where do their files lie?");
	if (opt.list != NULL && (opt.include != NULL || opt.exclude != NULL || opt.one_fs || opt.follow))
		return ("--include, --exclude, --one-file-system and --follow are for trees, not for a --list");
	if (opt.one_fs && !walk_touch_can_stay())
		return ("--one-file-system needs openat2(2): Linux 5.6 or newer");
	return (NULL);
}

static bool
choose(struct walk_conf *conf)
{
	const char *wrong = contradiction();

	if (wrong != NULL) {
		walk_say("%s (--help lists the options)", wrong);
		return (false);
	}
	*conf = (struct walk_conf){ .follow = opt.follow, .one_fs = opt.one_fs, .list = opt.list, .below = opt.below, .nul = opt.nul,
		.urls = opt.urls, .state = opt.state, .json = opt.json, .quiet = opt.quiet, .verbose = opt.verbose };
	conf->roots = (const char *const *)opt.rest;
	conf->include = (const char *const *)opt.include;
	conf->exclude = (const char *const *)opt.exclude;
	return (choose_warm(conf) && choose_threads(&conf->threads) && choose_rate("rate", opt.rate, &conf->files_per_s) &&
	    choose_rate("bandwidth", opt.bandwidth, &conf->bytes_per_s));
}

/* ---------------------------------------------------------------- the command line */

static bool
parse(char **argv)
{
	char **args = short_values_apart(argv, entries);
	GOptionContext *context = g_option_context_new("PATH... | --list FILE - make files warm");
	GError *error = NULL;
	bool good;

	g_option_context_add_main_entries(context, entries, NULL);
	g_option_context_set_description(context, description);
	good = g_option_context_parse_strv(context, &args, &error);
	if (!good) {
		walk_say("%s (--help lists the options)", error->message);
		g_error_free(error);
	}
	g_option_context_free(context);
	g_strfreev(args);
	return (good);
}

static int
print_manual(void)
{
	struct buf page;
	int code = 0;

	buf_init(&page, 0);
	if (walk_manual_print(opt.manual, entries, &page) == 0)
		fwrite(page.p, 1, page.n, stdout);
	else {
		walk_say("--manual: expected text or roff, got \"%s\"", opt.manual);
		code = EX_USAGE;
	}
	buf_free(&page);
	return (code);
}

int
walk_options_read(char **argv, struct walk_conf *conf)
{
	if (!parse(argv))
		return (EX_USAGE);
	if (opt.version) {
		puts("accel-warm " STAT_ACCEL_VERSION);
		return (0);
	}
	if (opt.manual != NULL)
		return (print_manual());
	return (choose(conf) ? WALK_OPTIONS_RUN : EX_USAGE);
}

void
walk_options_free(void)
{
	g_free(opt.warm);
	g_free(opt.threads);
	g_free(opt.rate);
	g_free(opt.bandwidth);
	g_free(opt.list);
	g_free(opt.below);
	g_free(opt.state);
	g_free(opt.manual);
	g_strfreev(opt.include);
	g_strfreev(opt.exclude);
	g_strfreev(opt.rest);
}
