#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/option.h"
#include "options.h"
#include "slowfs.h"

#define MS_MAX     60000
#define JITTER_MAX 100

struct options opt;

static struct values {
	struct options o;
	unsigned manual; /* 1: as text, 2: as roff */
	bool version;
} values;

static bool
read_number(const char *text, double most, void *at)
{
	char *end;
	double v;

	v = strtod(text, &end);
	if (end == text || *end != '\0' || !(v >= 0 && v <= most))
		return (false);
	*(double *)at = v;
	return (true);
}

static bool
read_ms(const char *text, void *at)
{
	return (read_number(text, MS_MAX, at));
}

static bool
read_percent(const char *text, void *at)
{
	return (read_number(text, JITTER_MAX, at));
}

#define O(field) offsetof(struct values, o.field)
#define G(field) offsetof(struct values, field)
#define MS(name, field, value, text)                                                            \
	{                                                                                       \
		name, '\0', "MS", OPTION_OWN, O(field), .def = value, .read = read_ms,          \
							.expected = "0 to 60000", .prose = text \
	}

static const struct option rows[] = {
	{ "spindles", 'n', "N", OPTION_NUMBER, O(spindles), 1, SPINDLES_MAX, "2",
	    .prose = "Requests served at the same time; others wait, oldest first." },
	MS("lookup-ms", lookup_ms, "8", "A look-up of a name, there or not."),
	MS("getattr-ms", getattr_ms, "0",
	    "Attributes that the kernel does not have or has forgotten."),
	MS("open-ms", open_ms, "0", "Each open, as on a network file system that asks again."),
	{ "no-open", '\0', NULL, OPTION_FLAG, O(no_open),
	    .prose = "The kernel asks for no open: reads need a name only." },
	{ "flush", '\0', NULL, OPTION_FLAG, O(flush),
	    .prose = "Each close asks, as on file systems that send what was written then." },
	{ "drop-at-open", '\0', NULL, OPTION_FLAG, O(drop_at_open),
	    .prose = "Each open drops the pages of the file, as most FUSE file systems do." },
	MS("read-ms", read_ms, "8", "A read of up to 128 KiB."),
	{ "write-ms", '\0', "MS", OPTION_OWN, O(write_ms), .read = read_ms,
	    .expected = "0 to 60000",
	    .prose = "Files that are there can be written; each 128 KiB take MS. Without it the "
		     "mount is read-only." },
	{ "jitter", '\0', "PCT", OPTION_OWN, O(jitter), .def = "0", .read = read_percent,
	    .expected = "0 to 100", .prose = "Spread of the times, the same in every run." },
	{ "no-async-dio", '\0', NULL, OPTION_FLAG, O(no_async_dio),
	    .prose = "Direct reads one request after the other." },
	{ "control", '\0', "PATH", OPTION_TEXT, O(control),
	    .prose = "A socket that takes orders, see ORDERS." },
	{ "until-eof", '\0', NULL, OPTION_FLAG, O(until_eof),
	    .prose = "Unmount when standard input ends." },
	{ "manual", '\0', "text|roff", OPTION_WORD, G(manual), 1, .alone = "text",
	    .prose = "Print the manual page, as text or for man(1)." },
	{ "version", 'V', NULL, OPTION_FLAG, G(version), .prose = "Print the version." },
	OPTION_HELP_ROW,
	{ NULL },
};

static const struct command command = { "slowfs", "[OPTION]... SOURCE MOUNTPOINT",
	"Shows SOURCE at MOUNTPOINT, slow on first access. Stays in the foreground.\n"
	"\n"
	"    slowfs --spindles 2 --read-ms 8 /srv/www /mnt/slow\n"
	"\n"
	"Prints \"ready\" once mounted; unmounts on TERM and INT; on USR1 and at the end it\n"
	"prints how many requests reached the disks.\n",
	rows };

static const char text[] =
#include "t/slowfs/manual.txt.inc"
    ;

static void
manual(struct manpage *p)
{
	const char *rest;

	manpage_title(p, "slowfs", "1");
	rest = manpage_marked(p, text);
	options_manual(p, rows);
	manpage_marked(p, rest);
}

int
options_read(char **argv, const char **source, const char **mountpoint)
{
	const char *const *words;
	int code;

	values.o.write_ms = -1;
	code = options_parse(&command, argv, &values, &words);
	if (code != OPTIONS_RUN)
		return (code);
	if (values.version)
		return (puts("slowfs " STAT_ACCEL_VERSION) < 0 ? 74 : 0);
	if (values.manual != 0)
		return (options_print(manual, values.manual == 2));
	if (words == NULL || words[0] == NULL || words[1] == NULL || words[2] != NULL)
		return (options_wrong(&command,
		    "expected SOURCE and MOUNTPOINT (--help lists the options)"));
	opt = values.o;
	*source = words[0];
	*mountpoint = words[1];
	return (OPTIONS_RUN);
}
