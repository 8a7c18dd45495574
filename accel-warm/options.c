#include "accel-warm/options.h"

#include <stdio.h>
#include <sysexits.h>

#include "accel-warm/print.h"
#include "base/option.h"
#include "walk/ring.h"
#include "walk/touch.h"
#include "files/warm/mode.h"

#define NUMBER_MAX (1ull << 50) /* of bytes, and of files a second */

static struct given {
	struct walk_conf conf;
	bool print;
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

static bool
is_prefix(const char *text, void *at)
{
	return (text[0] == '/');
}

/* In the order of enum ring_hash, each without the avalanche. */
#define HASHES "sdbm-avalanche|sdbm|djb2-avalanche|djb2|crc32-avalanche|crc32"

static const struct option rows[] = {
	/* The kernel reads this much ahead on the first read of a file.  A server finds these bytes
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
	    .prose = "Entries are URLs or their paths; host and query are ignored, the path is "
		     "percent-decoded. Needs --root." },
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
	{ "shard", '\0', "K/N", OPTION_TEXT, AT(conf.share.shard),
	    .prose = "Only files whose URL a balancer sends to the node K of N, from 1." },
	{ "nodes", '\0', "NODE[=WEIGHT],...", OPTION_NAMES, AT(conf.share.nodes),
	    .prose = "The N nodes: ids of servers of HAProxy, or backends of accel-server as its "
		     "configuration has them. Without it: the ids 1 to N." },
	{ "weight", '\0', "N", OPTION_NUMBER, AT(conf.share.weight), 1, RING_WEIGHT_MAX, "1",
	    .prose = "Weight of nodes without one." },
	{ "balance", '\0', "path|uri|carp", OPTION_WORD, AT(conf.share.balance), SHARD_PATH,
	    .def = "path",
	    .prose = "How the balancer chooses: by HAProxy's balance hash path,url_dec, by its "
		     "balance uri path-only, both with hash-type consistent, or by accel-server's "
		     "proxy-core.balancer = \"carp\"." },
	{ "hash", '\0', HASHES, OPTION_WORD, AT(conf.share.hash), 0, .def = "sdbm-avalanche",
	    .prose = "The hash function of HAProxy's hash-type consistent; HAProxy has the same "
		     "default." },
	{ "host", '\0', "HOST", OPTION_TEXT, AT(conf.share.host),
	    .prose = "For --balance=carp: the host of the URLs, with its port if clients send "
		     "one." },
	{ "prefix", '\0', "PATH", OPTION_TEXT, AT(conf.share.prefix), .def = "/", .read = is_prefix,
	    .expected = "a path that starts with a slash",
	    .prose = "For --shard: what URLs have before the path below PATH, or below --root." },
	{ "one-file-system", 'x', NULL, OPTION_FLAG, AT(conf.one_fs),
	    .prose = "Skip file systems mounted below PATH." },
	{ "follow", 'L', NULL, OPTION_FLAG, AT(conf.follow),
	    .prose = "Follow symbolic links; each directory is read once." },
	{ "state", 's', "FILE", OPTION_TEXT, AT(conf.state),
	    .prose =
		"Keep finished work in FILE: the same command resumes after an interruption." },
	{ "print", '\0', NULL, OPTION_FLAG, AT(print),
	    .prose = "Print the paths of the files instead of touching them." },
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
	if (given.print && (c->state != NULL || c->json))
		return ("--print goes with neither --state nor --json");
	if (c->share.shard == NULL && (c->share.nodes != NULL || c->share.host != NULL))
		return ("--nodes and --host need --shard");
	if (c->list != NULL && (c->include != NULL || c->exclude != NULL || c->one_fs || c->follow))
		return (
		    "--include, --exclude, --one-file-system and --follow need PATH, not --list");
	if (c->one_fs && !walk_touch_can_stay())
		return ("--one-file-system needs openat2(2): Linux 5.6 or newer");
	return (NULL);
}

static int
make_shard(struct walk_conf *conf)
{
	char *why;

	conf->shard = walk_shard_new(&conf->share, &why);
	if (conf->shard != NULL)
		return (OPTIONS_RUN);
	options_wrong(&walk_command, "%s", why);
	g_free(why);
	return (EX_USAGE);
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
	if (given.conf.share.shard != NULL && (code = make_shard(&given.conf)) != OPTIONS_RUN)
		return (code);
	*conf = given.conf;
	if (given.print)
		print_instead(conf);
	return (OPTIONS_RUN);
}
