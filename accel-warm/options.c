#include "accel-warm/options.h"

#include <stdio.h>
#include <sysexits.h>

#include "base/option.h"
#include "walk/touch.h"
#include "files/warm/mode.h"

#define NUMBER_MAX (1ull << 50) /* of bytes, and of files a second */

static struct given {
	struct walk_conf conf;
	unsigned manual; /* 1: as text, 2: as roff */
	bool version;
} given;

#define AT(field) offsetof(struct given, field)

static bool
read_warm(const char *text, void *at)
{
	struct walk_conf *conf = at;

	return (warm_mode_parse(text, &conf->how, &conf->before) && conf->before > 0);
}

static const struct option rows[] = {
	/* The kernel reads so much ahead on the first read of a file.  A server finds these bytes
	 * in memory, and the kernel reads the rest meanwhile. */
	{ "warm", 'w', "stat|open|read:BYTES|read:all", OPTION_OWN, AT(conf), .def = "read:128k",
	    .read = read_warm, .expected = WARM_MODES,
	    .prose =
		"What becomes warm: the inode, the open file, its first bytes, or all of it." },
	{ "list", 'l', "FILE", OPTION_TEXT, AT(conf.list),
	    .prose = "Read paths from FILE, one per line; - is standard input." },
	{ "null", '0', NULL, OPTION_FLAG, AT(conf.nul),
	    .prose = "Paths in the list end with a NUL byte, as find -print0 writes them." },
	{ "root", 'r', "DIR", OPTION_TEXT, AT(conf.below),
	    .prose = "Paths in the list are below DIR, with or without a slash before them." },
	{ "urls", 'u', NULL, OPTION_FLAG, AT(conf.urls),
	    .prose = "Entries of the list are URLs or their paths: without host and query, "
		     "percent-decoded; needs --root." },
	{ "threads", 'j', "N", OPTION_NUMBER, AT(conf.threads), 1, 1024, "32",
	    .prose = "Threads that touch files." },
	{ "rate", '\0', "N", OPTION_SIZE, AT(conf.files_per_s), 1, NUMBER_MAX,
	    .prose = "At most N files a second; suffixes k m g." },
	{ "bandwidth", '\0', "BYTES", OPTION_SIZE, AT(conf.bytes_per_s), 1, NUMBER_MAX,
	    .prose = "At most BYTES read a second; suffixes k m g." },
	{ "include", '\0', "GLOB", OPTION_REPEAT, AT(conf.include),
	    .prose = "Only files whose name matches GLOB; may be repeated." },
	{ "exclude", '\0', "GLOB", OPTION_REPEAT, AT(conf.exclude),
	    .prose = "No files and directories whose name matches GLOB; may be repeated." },
	{ "one-file-system", 'x', NULL, OPTION_FLAG, AT(conf.one_fs),
	    .prose = "Skip file systems mounted below PATH." },
	{ "follow", 'L', NULL, OPTION_FLAG, AT(conf.follow),
	    .prose = "Follow symbolic links; each directory is read once." },
	{ "state", 's', "FILE", OPTION_TEXT, AT(conf.state),
	    .prose =
		"Keep finished work in FILE: the same command resumes after an interruption." },
	{ "json", '\0', NULL, OPTION_FLAG, AT(conf.json), .prose = "Print the summary as JSON." },
	{ "quiet", 'q', NULL, OPTION_FLAG, AT(conf.quiet),
	    .prose = "Print no progress bar and no summary." },
	{ "verbose", 'v', NULL, OPTION_FLAG, AT(conf.verbose),
	    .prose = "Print the progress every ten seconds if standard error is not a terminal." },
	{ "manual", '\0', "text|roff", OPTION_WORD, AT(manual), 1, .alone = "text",
	    .prose = "Print the manual page, as text or for man(1)." },
	{ "version", 'V', NULL, OPTION_FLAG, AT(version), .prose = "Print the version." },
	OPTION_HELP_ROW,
	{ NULL },
};

const struct command walk_command = { "accel-warm", "[OPTION]... PATH... | --list FILE",
	"Makes the files of trees, or of a list, warm with many threads.\n"
	"\n"
	"    accel-warm /srv/www\n"
	"    accel-warm --warm=read:all --state /var/tmp/warm.state /mnt/restored\n"
	"    accel-warm --list urls.txt --urls --root /srv/www\n"
	"    find /srv/www -newer stamp -type f -print0 | accel-warm -0 -l -\n",
	rows };

/* Options that exclude each other; NULL: none. */
static const char *
contradiction(const struct walk_conf *c)
{
	if (c->roots == NULL && c->list == NULL)
		return ("expected PATH or --list FILE, got none");
	if (c->roots != NULL && c->list != NULL)
		return ("expected PATH or --list FILE, got both");
	if (c->list == NULL && (c->below != NULL || c->nul || c->urls))
		return ("--root, --null and --urls need --list");
	if (c->urls && c->below == NULL)
		return ("--urls needs --root, the directory of the files");
	if (c->list != NULL && (c->include != NULL || c->exclude != NULL || c->one_fs || c->follow))
		return (
		    "--include, --exclude, --one-file-system and --follow need PATH, not --list");
	if (c->one_fs && !walk_touch_can_stay())
		return ("--one-file-system needs openat2(2): Linux 5.6 or newer");
	return (NULL);
}

int
walk_options_read(char **argv, struct walk_conf *conf)
{
	int code = options_parse(&walk_command, argv, &given, &given.conf.roots);
	const char *wrong;

	if (code != OPTIONS_RUN)
		return (code);
	if (given.version)
		return (puts("accel-warm " STAT_ACCEL_VERSION) < 0 ? EX_IOERR : 0);
	if (given.manual != 0)
		return (options_print(walk_manual, given.manual == 2));
	wrong = contradiction(&given.conf);
	if (wrong != NULL)
		return (options_wrong(&walk_command, "%s (--help lists the options)", wrong));
	*conf = given.conf;
	return (OPTIONS_RUN);
}
