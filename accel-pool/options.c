#include "accel-pool/options.h"

#include <glib.h>
#include <limits.h>
#include <stdio.h>
#include <sysexits.h>

static struct pool_conf given;

#define AT(field) offsetof(struct pool_conf, field)

static bool
read_spec(const char *text, void *at)
{
	struct spec s;

	if (spec_parse(text_of(text), &s) != NULL)
		return (false);
	return (options_append(text, at));
}

#define THREADS(n, prose_)                                                                        \
	{                                                                                         \
		"threads", 'j', "N", OPTION_NUMBER, AT(walk.threads), 1, 1024, n, .prose = prose_ \
	}
#define LISTS                                                                                      \
	{ "list", 'l', "FILE", OPTION_TEXT, AT(walk.list),                                         \
		.prose =                                                                           \
		    "Read paths from FILE, one per line, instead of DIR; - is standard input." },  \
	    { "null", '0', NULL, OPTION_FLAG, AT(walk.nul),                                        \
		    .prose =                                                                       \
			"Paths in the list end with a NUL byte, as find -print0 writes them." },   \
	    { "root", 'r', "DIR", OPTION_TEXT, AT(walk.below),                                     \
		    .prose =                                                                       \
			"Paths in the list are below DIR, with or without a slash before them." }, \
	{                                                                                          \
		"urls", 'u', NULL, OPTION_FLAG, AT(walk.urls),                                     \
		    .prose = "Entries of the list are URLs or their paths; needs --root."          \
	}

#define OUTPUT                                                                                     \
	{ "json", '\0', NULL, OPTION_FLAG, AT(walk.json), .prose = "Print the summary as JSON." }, \
	    { "quiet", 'q', NULL, OPTION_FLAG, AT(walk.quiet),                                     \
		    .prose = "Print no progress bar and no summary." },                            \
	    { "verbose", 'v', NULL, OPTION_FLAG, AT(walk.verbose),                                 \
		    .prose = "Print the progress every ten seconds if standard error is not a "    \
			     "terminal." },                                                        \
	    OPTION_HELP_ROW,                                                                       \
	{                                                                                          \
		NULL                                                                               \
	}

static const struct option make_rows[] = {
	{ "spec", 's', "DIRSxFILESxSIZE", OPTION_OWN, AT(specs), .read = read_spec,
	    .expected = "DIRSxFILESxSIZE, as 1000x100x100k or 10x10x4k-1m",
	    .prose = "Directories, files in each, and their size: 512, 100k, 10m, or a range as "
		     "4k-1m; may be repeated. Without it: the rest of an interrupted run, or "
		     "1000x100x100k." },
	{ "seed", '\0', "N", OPTION_SIZE, AT(seed), 1, UINT32_MAX,
	    .prose = "Other sizes within a range: the same number gives the same sizes. "
		     "Without it: 1." },
	{ "sync", '\0', NULL, OPTION_FLAG, AT(sync),
	    .prose = "End when all of it is on the disk." },
	{ "force", '\0', NULL, OPTION_FLAG, AT(force),
	    .prose = "Allow a directory that has other files in it." },
	THREADS("4", "Threads that write."),
	OUTPUT,
};

static const struct option remove_rows[] = {
	THREADS("4", "Threads that remove."),
	OUTPUT,
};

static const struct option evict_rows[] = {
	LISTS,
	THREADS("8", "Threads that open files."),
	OUTPUT,
};

static const struct option check_rows[] = {
	LISTS,
	THREADS("8", "Threads that read."),
	{ "bandwidth", '\0', "BYTES", OPTION_SIZE, AT(walk.bytes_per_s), 1, 1ull << 50,
	    .prose = "At most BYTES read a second; suffixes k m g." },
	OUTPUT,
};

static bool
is_path(const char *text, void *at)
{
	return (text[0] == '/' && g_str_has_suffix(text, "/"));
}

static bool
is_base(const char *text, void *at)
{
	return ((g_str_has_prefix(text, "http://") || g_str_has_prefix(text, "https://")) &&
		!g_str_has_suffix(text, "/"));
}

static const struct option list_rows[] = {
	{ "log", '\0', "FILE", OPTION_TEXT, AT(log),
	    .prose = "The requests of an access log instead of DIR, in their order; - is standard "
		     "input." },
	{ "status", '\0', "STATUS,...", OPTION_NAMES, AT(status), .def = "200,206",
	    .prose = "With --log: only GET requests with one of these answers." },
	{ "prefix", '\0', "PATH", OPTION_TEXT, AT(prefix), .def = "/", .read = is_path,
	    .expected = "a path with a slash at its start and at its end",
	    .prose = "What the server has before the paths of DIR." },
	{ "base", '\0', "URL", OPTION_TEXT, AT(base), .read = is_base,
	    .expected = "http://HOST or http://HOST:PORT",
	    .prose = "Whole URLs of this server instead of paths." },
	{ "min", '\0', "BYTES", OPTION_SIZE, AT(min), 0, 1ull << 50,
	    .prose = "Only files of DIR with at least this many bytes; suffixes k m g." },
	{ "max", '\0', "BYTES", OPTION_SIZE, AT(max), 1, 1ull << 50,
	    .prose = "Only files of DIR with at most this many bytes; suffixes k m g." },
	{ "include", '\0', "GLOB", OPTION_REPEAT, AT(walk.include),
	    .prose = "Only files of DIR whose name matches GLOB; may be repeated." },
	{ "exclude", '\0', "GLOB", OPTION_REPEAT, AT(walk.exclude),
	    .prose = "No files and directories of DIR whose name matches GLOB; may be repeated." },
	{ "unique", '\0', NULL, OPTION_FLAG, AT(unique), .prose = "Each URL of a log once." },
	{ "shuffle", '\0', NULL, OPTION_FLAG, AT(shuffle),
	    .prose = "In an order that follows from --seed." },
	{ "seed", '\0', "N", OPTION_SIZE, AT(seed), 1, UINT32_MAX,
	    .prose = "Another order of --shuffle. Without it: 1." },
	{ "limit", '\0', "N", OPTION_SIZE, AT(limit), 1, 1ull << 50,
	    .prose = "At most N URLs; suffixes k m g." },
	THREADS("8", "Threads that read directories."),
	{ "quiet", 'q', NULL, OPTION_FLAG, AT(walk.quiet), .prose = "Print the list only." },
	OPTION_HELP_ROW,
	{ NULL },
};

const struct pool_command pool_commands[] = {
	{ { "accel-pool make", "[OPTION]... DIR", "", make_rows }, "make",
	    "Make a pool in DIR, or the rest of one.", 1, false, pool_make },
	{ { "accel-pool list", "[OPTION]... DIR... | --log FILE", "", list_rows }, "list",
	    "Print URLs of the files of a tree, or of an access log.", UINT_MAX, false, pool_list },
	{ { "accel-pool evict", "[OPTION]... DIR... | --list FILE", "", evict_rows }, "evict",
	    "Remove just these files from memory, so that the next read is cold.", UINT_MAX, true,
	    pool_evict },
	{ { "accel-pool state", "[OPTION]... DIR... | --list FILE", "", evict_rows }, "state",
	    "Tell how much of the files is in memory.", UINT_MAX, true, pool_state },
	{ { "accel-pool check", "[OPTION]... DIR | --list FILE --root DIR", "", check_rows },
	    "check", "Compare the files of a pool with what they must be.", 1, true, pool_check },
	{ { "accel-pool remove", "[OPTION]... DIR", "", remove_rows }, "remove",
	    "Remove the pool; files that accel-pool did not make stay.", 1, false, pool_remove },
	{ .word = NULL },
};

static const struct option rows[] = {
	{ "manual", '\0', "text|roff", OPTION_WORD, AT(manual), 1, .alone = "text",
	    .prose = "Print the manual page, as text or for man(1)." },
	{ "version", 'V', NULL, OPTION_FLAG, AT(version), .prose = "Print the version." },
	OPTION_HELP_ROW,
	{ NULL },
};

const struct command pool_program = { "accel-pool", "COMMAND [OPTION]... DIR",
	"Commands:\n"
	"  make     Make files whose contents prove their name, in DIR.\n"
	"  list     Print URLs of the files of a tree, or of an access log.\n"
	"  evict    Remove just these files from memory, so that the next read is cold.\n"
	"  state    Tell how much of them is in memory.\n"
	"  check    Compare the contents of a pool with what they must be.\n"
	"  remove   Remove the pool; files that accel-pool did not make stay.\n"
	"\n"
	"    accel-pool make --spec 1000x100x100k /srv/pool\n"
	"    accel-pool list --prefix /pool/ --shuffle /srv/pool >urls\n"
	"    accel-pool evict /srv/pool\n"
	"\n"
	"accel-pool COMMAND --help lists the options of a command.\n",
	rows };

/* ---------------------------------------------------------------- the command line */

static const struct pool_command *
find(const char *word)
{
	const struct pool_command *c;

	for (c = pool_commands; c->word != NULL; c++)
		if (strcmp(c->word, word) == 0)
			return (c);
	return (NULL);
}

/* "accel-pool --help" and other words that are not a command. */
static int
read_program(char **argv, struct pool_conf *conf)
{
	const char *const *words;
	int code = options_parse(&pool_program, argv, conf, &words);

	if (code != OPTIONS_RUN)
		return (code);
	if (conf->version)
		return (puts("accel-pool " STAT_ACCEL_VERSION) < 0 ? EX_IOERR : 0);
	if (conf->manual != 0)
		return (options_print(pool_manual, conf->manual == 2));
	return (options_wrong(&pool_program,
	    "expected make, list, evict, state, check or remove, got %s%s%s (--help)",
	    words != NULL ? "\"" : "", words != NULL ? words[0] : "nothing",
	    words != NULL ? "\"" : ""));
}

/* Words that are missing, or too many; NULL: neither. */
static const char *
contradiction(const struct pool_command *c, const struct pool_conf *conf)
{
	const char *const *words = conf->words;
	unsigned n = words != NULL ? g_strv_length((char **)words) : 0;
	const bool from_file = conf->walk.list != NULL || conf->log != NULL;

	if (n == 0 && !from_file)
		return (
		    c->list ? "expected DIR or --list FILE, got none" : "expected DIR, got none");
	if (n > 0 && from_file)
		return ("expected DIR or a file with names, got both");
	if (n > c->max_words)
		return ("expected one DIR, got more");
	if (conf->walk.list == NULL &&
	    (conf->walk.below != NULL || conf->walk.nul || conf->walk.urls))
		return ("--root, --null and --urls need --list");
	if (conf->log != NULL && (conf->min != 0 || conf->max != 0 || conf->walk.include != NULL ||
				     conf->walk.exclude != NULL))
		return ("--min, --max, --include and --exclude need DIR");
	if (conf->walk.list != NULL && conf->walk.below == NULL &&
	    (conf->walk.urls || c->run == pool_check))
		return ("--list with URLs, or to check, needs --root, the directory of the files");
	return (NULL);
}

int
pool_options_read(char **argv, struct pool_conf *conf, const struct pool_command **which)
{
	const struct pool_command *c = argv[1] != NULL ? find(argv[1]) : NULL;
	const char *wrong;
	int code;

	if (c == NULL)
		return (read_program(argv, &given));
	code = options_parse(&c->command, argv + 1, &given, &given.words);
	if (code != OPTIONS_RUN)
		return (code);
	wrong = contradiction(c, &given);
	if (wrong != NULL)
		return (options_wrong(&c->command, "%s (--help lists the options)", wrong));
	given.walk.roots = given.words;
	given.walk.beneath = given.walk.below != NULL;
	*which = c;
	*conf = given;
	return (OPTIONS_RUN);
}
