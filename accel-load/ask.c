/* accel-load/ask.c -- see ask.h */
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>
#include "accel-load/ask.h"

static bool
says_yes(void)
{
	char line[16];

	return (fgets(line, sizeof(line), stdin) != NULL && (line[0] == 'y' || line[0] == 'Y'));
}

int
ask_targets(const struct load_conf *conf, const struct urls *urls)
{
	const struct target *t;

	for (t = urls->targets; t != NULL; t = t->next) {
		if (t->local || conf->yes)
			continue;
		if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
			load_message("%s (%s) is not an address of this host; --yes loads it, if "
				     "its owner agrees",
			    t->authority, t->name);
			return (EX_NOPERM);
		}
		fprintf(stderr,
		    "%s (%s) is not an address of this host. Does its owner agree "
		    "to a load test? [y/N] ",
		    t->authority, t->name);
		if (!says_yes())
			return (EX_NOPERM);
	}
	return (0);
}
