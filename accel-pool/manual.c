#include "accel-pool/options.h"

#include <glib.h>

static const char description[] =
    "# NAME\n"
    "accel-pool - make, list, evict and check files for measurements\n"
    "# SYNOPSIS\n"
    "accel-pool COMMAND [OPTION]... DIR\n"
    "# DESCRIPTION\n"
    "A measurement of a file server needs many files of known sizes, a list of their URLs, and a "
    "way to make just these files cold. accel-pool does all three, and checks the files "
    "afterwards.\n"
    "# POOLS\n"
    "make writes DIRS directories of FILES files of SIZE bytes each:\n"
    "| accel-pool make --spec 1000x100x100k --spec 1x1000x10m /srv/pool\n"
    "The files are DIR/SIZE/DDDD/FFFF.bin, with numbers from 0000: 100k/0007/0042.bin. The bytes "
    "of "
    "a file follow from this name and from their offset, so a wrong byte, a wrong file and a wrong "
    "range are found without a copy. They do not compress.\n"
    "The sizes of a range as 4k-1m are log-uniform: as many files have 4k to 8k as 512k to 1m.\n"
    "A file is complete when it has its name. A run that was interrupted is resumed by the same "
    "command, or without --spec. The file .accel-pool in DIR says what the pool has; a second "
    "make may add sizes, directories and files.\n"
    "A pool is no place for other files, but files that are not of the pool are never touched.\n";

static const char operation[] =
    "# LISTS OF URLS\n"
    "list prints what accel-load --urls and http_load read, a path or a URL in each line. Paths of "
    "a tree are sorted, and bytes that a URL cannot have are percent-encoded. --shuffle gives the "
    "same order for the same --seed. Links and other names that are no files are left out.\n"
    "A log is in the common or the combined format, as nginx, Apache, lighttpd and accel-server "
    "write it. Its order and its repetitions stay, so that a measurement asks as the clients did. "
    "GET requests with the answers of --status count. A rotated log comes through a pipe:\n"
    "| zcat access.log.2.gz | accel-pool list --log - >urls\n"
    "URLs of more than 8192 bytes are left out and counted. A log needs no memory without "
    "--unique and --shuffle; with them, and for a tree, a URL takes its length and about 50 "
    "bytes.\n"
    "# COLD FILES\n"
    "evict writes dirty pages of the files to the disk, and takes all pages of the files out of "
    "memory with POSIX_FADV_DONTNEED. Other files stay there. What the kernel keeps is counted by "
    "its reason: the file system has no disk (tmpfs), the page is not written yet (dirty), a "
    "process has locked or mapped it, or something else uses it. Names and inodes stay in memory.\n"
    "state and evict ask cachestat(2), since Linux 6.5, or mincore(2). The kernel tells users "
    "nothing of files that they may not write.\n"
    "Files are opened relative to their directory. No link is followed in a tree; in a list with "
    "--root only links that stay below it are followed.\n"
    "# EXIT STATUS\n"
    "= 0\n"
    "All is done.\n"
    "= 1\n"
    "Some files could not be opened. check: files are wrong or missing. remove: files that are not "
    "as accel-pool has made them stay.\n"
    "= 64\n"
    "The command line is wrong.\n"
    "= 65\n"
    "The directory is no pool, or a pool of another seed or shape. list: the log has no request "
    "that counts.\n"
    "= 66\n"
    "A directory, a list or a log cannot be opened. list: no file was found.\n"
    "= 73\n"
    "make: no room, or the directory has other files in it.\n"
    "= 74\n"
    "The disk reports an error, or the list cannot be written.\n"
    "= 75\n"
    "Another run changes the pool.\n"
    "= 128 + N\n"
    "Ended by signal N: 130 after Ctrl-C.\n"
    "# SIGNALS\n"
    "= INT, TERM, HUP\n"
    "Print the summary and end at once. make and remove are resumed by the same command.\n"
    "= USR1\n"
    "Print the progress on standard error.\n"
    "# EXAMPLES\n"
    "The small files of 2007, their URLs, and a cold measurement:\n"
    "| accel-pool make --spec 1000x100x100k --sync /srv/pool\n"
    "| accel-pool list --prefix /pool/ --base http://127.0.0.1 --shuffle /srv/pool >urls\n"
    "| accel-pool evict /srv/pool\n"
    "| accel-load --parallel 100 --seconds 60 --verify pattern --urls urls\n"
    "Make the files of yesterday's requests cold:\n"
    "| accel-pool list --log access.log.1 --unique | accel-pool evict -l - -u -r /srv/www\n"
    "# SEE ALSO\n"
    "accel-load(1), accel-bench(1), accel-warm(1)\n";

/* "make DIR", what it does, its options. */
static void
put_command(struct manpage *p, const struct pool_command *c)
{
	GString *s = g_string_new("# ");
	char *word = g_ascii_strup(c->word, -1);

	g_string_append_printf(s, "%s\n| %s %s\n%s\n", word, c->command.name, c->command.usage,
	    c->about);
	manpage_marked(p, s->str);
	options_items(p, c->command.options);
	g_free(word);
	g_string_free(s, TRUE);
}

void
pool_manual(struct manpage *p)
{
	const struct pool_command *c;

	manpage_title(p, "accel-pool", "1");
	manpage_marked(p, description);
	for (c = pool_commands; c->word != NULL; c++)
		put_command(p, c);
	options_manual(p, pool_program.options);
	manpage_marked(p, operation);
}
