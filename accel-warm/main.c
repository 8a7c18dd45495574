/* accel-warm/main.c -- accel-warm: a walk whose threads touch each file. */
#include <sysexits.h>

#include "accel-warm/options.h"
#include "io/start/std_fds.h"
#include "walk/report.h"
#include "walk/run.h"

int
main(int argc, char **argv)
{
	struct walk_conf conf;
	int code;

	walk_report_as(walk_command.name);
	if (io_open_std_fds() != 0)
		return (EX_OSERR);
	code = walk_options_read(argv, &conf);
	if (code == OPTIONS_RUN)
		code = walk_run(&conf);
	return (code);
}
