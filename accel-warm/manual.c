#include "accel-warm/manual.h"

#include <errno.h>
#include <string.h>

#include "base/manual_part.h"

static const struct manual_said statuses[] = {
	{ "0", "All files are warm. Those that vanished while it walked do not count." },
	{ "1", "Some could not be made warm; standard error names the first twenty, the summary has their number. In a list a file "
	    "that is not there is one of them." },
	{ "64", "The command line was not understood." },
	{ "65", "The state file belongs to a run with other paths or options, or is no state file." },
	{ "66", "The list or its root cannot be opened." },
	{ "71", "The system refused threads." },
	{ "73", "The state file cannot be written." },
	{ "75", "Another run is using the state file." },
	{ "128 + N", "Ended by signal N: 130 after Ctrl-C." },
	{ NULL },
};

static const struct manual_said signals[] = {
	{ "INT, TERM, HUP", "Save the state, print the summary and end, at once: files that a disk has not answered for are not waited for." },
	{ "USR1", "Tell on standard error how far it is." },
	{ NULL },
};

static const char *const restored[] = {
	"ionice -c 3 accel-warm --warm=read:all --state /var/tmp/warm.state -x /mnt/restored",
	NULL,
};

static const char *const deployed[] = {
	"accel-warm /srv/www/releases/42 && ln -sfn releases/42 /srv/www/current",
	NULL,
};

static const char *const from_log[] = {
	"awk '{ print $7 }' access.log | sort -u | accel-warm --list - --urls --root /srv/www",
	NULL,
};

static const char *const from_find[] = {
	"find /srv/www -mtime -1 -print0 | accel-warm -0 -l -",
	NULL,
};

static void
head(struct manpage *p)
{
	manpage_title(p, "accel-warm", "1");
	manpage_heading(p, "NAME");
	manpage_para(p, "accel-warm - make the files of a tree or a list warm");
	manpage_heading(p, "SYNOPSIS");
	manpage_para(p, "accel-warm [OPTION]... PATH...");
	manpage_para(p, "accel-warm [OPTION]... --list FILE");
	manpage_heading(p, "DESCRIPTION");
	manpage_para(p, "After a deploy nothing is in memory, and blocks of a volume restored from a snapshot come from far away when "
	    "they are read for the first time. accel-warm touches every file before clients ask for it, with many requests "
	    "to the disk at the same time.");
	manpage_para(p, "Names in a directory are taken in the order of their inodes. Files are opened relative to their directory and without "
	    "changing access times where that may be asked for. Links, sockets and devices are looked up, never opened.");
}

static void
how_much(struct manpage *p)
{
	manpage_heading(p, "HOW MUCH TO WARM");
	manpage_para(p, "Each step takes more time and more memory than the one before:");
	manpage_item(p, "stat");
	manpage_said(p, "Names and inodes: about 1 kB of memory per file.");
	manpage_item(p, "open");
	manpage_said(p, "The same on local file systems; on network file systems the server is asked for the file as well.");
	manpage_item(p, "read:128k (default)");
	manpage_said(p, "The start of each file too, which is the whole of most. It is what the kernel would read ahead at the first read: a "
	    "server that comes later sends that much without a wait, and the rest is read ahead while it does.");
	manpage_item(p, "read:all");
	manpage_said(p, "For a restored volume, so that every block is here. Not for a tree that is larger than memory: what is "
	    "read last pushes out what was read first.");
}

static void
lists(struct manpage *p)
{
	manpage_heading(p, "LISTS");
	manpage_para(p, "A path is taken as it stands, with any bytes; empty ones are passed over. Links are followed. A directory is "
	    "read but not walked, because find(1) lists what is in it. With --urls an entry that climbs out of the root is refused.");
	manpage_heading(p, "PATTERNS");
	manpage_para(p, "A GLOB is for the name alone, or, with a slash in it, for the path below PATH, and its stars do not match slashes. "
	    "What --exclude matches is left out, directories with all that is in them. --include is for files only.");
}

static void
resume(struct manpage *p)
{
	manpage_heading(p, "STATE");
	manpage_para(p, "With --state FILE, what is done is written to FILE every two seconds and at the end of a run that was interrupted. The "
	    "same command then goes on: it reads all directories again and leaves out those whose files are done, with the same "
	    "names and inodes as before; what is new or was replaced is touched. Nothing is lost, even by KILL; what was under way is "
	    "done twice. When everything is done FILE is removed.");
	manpage_para(p, "For other paths or options it is an error: finish with the old ones, or remove FILE. A standard input that is a "
	    "list must bring the same paths in the same order; those that come in another order are touched again.");
	manpage_heading(p, "DISKS THAT ARE BUSY OR HANG");
	manpage_para(p, "32 threads keep 16 disks busy. Beside clients, use fewer, --rate or --bandwidth, or ionice -c 3, which counts with the "
	    "scheduler bfq only. Over any time no more is read than --bandwidth allows and one piece per thread.");
	manpage_para(p, "A file without an answer for five seconds holds its thread, and another takes its place, up to four times as many; "
	    "when half of --threads hang on one device, the others leave it alone. The end waits for them; Ctrl-C does not.");
}

static void
examples(struct manpage *p)
{
	manpage_heading(p, "EXAMPLES");
	manpage_para(p, "A volume restored from a snapshot, all of it, while others use the disk:");
	manpage_example(p, restored);
	manpage_para(p, "A new release, before it goes live:");
	manpage_example(p, deployed);
	manpage_para(p, "What was asked for yesterday:");
	manpage_example(p, from_log);
	manpage_para(p, "What find(1) finds:");
	manpage_example(p, from_find);
	manpage_heading(p, "SEE ALSO");
	manpage_para(p, "fcgi-stat-accel(1), find(1), ionice(1)");
}

int
walk_manual_print(const char *page, const GOptionEntry *table, struct buf *out)
{
	struct manpage p = { .out = out, .roff = strcmp(page, "roff") == 0 };

	if (!p.roff && strcmp(page, "text") != 0)
		return (-EINVAL);
	head(&p);
	manual_options(&p, table);
	how_much(&p);
	lists(&p);
	resume(&p);
	manual_section(&p, "EXIT STATUS", statuses);
	manual_section(&p, "SIGNALS", signals);
	examples(&p);
	return (0);
}
