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

static const char operation[] = "# EXIT STATUS\n"
				"= 0\n"
				"All is done.\n"
				"= 1\n"
				"remove: files that are not as accel-pool has made them stay.\n"
				"= 64\n"
				"The command line is wrong.\n"
				"= 65\n"
				"The directory is no pool, or a pool of another seed or shape.\n"
				"= 66\n"
				"The directory cannot be opened.\n"
				"= 73\n"
				"make: no room, or the directory has other files in it.\n"
				"= 74\n"
				"The disk reports an error.\n"
				"= 75\n"
				"Another run changes the pool.\n"
				"= 128 + N\n"
				"Ended by signal N: 130 after Ctrl-C.\n"
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
