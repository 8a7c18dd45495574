/* accel-pool/main.c -- accel-pool: one program, a command for each thing it does with files. */
#include <sysexits.h>

#include "accel-pool/options.h"
#include "io/start/std_fds.h"
#include "walk/report.h"

int
main(int argc, char **argv)
{
	const struct pool_command *command;
	struct pool_conf conf;
	int code;

	walk_report_as(pool_program.name);
	if (io_open_std_fds() != 0)
		return (EX_OSERR);
	code = pool_options_read(argv, &conf, &command);
	if (code == OPTIONS_RUN)
		code = command->run(&conf);
	return (code);
}
