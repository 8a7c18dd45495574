/* hostile -- clients that try to take a server on this machine from the others; `hostile --help`
 * lists what they do.
 *
 * For tests and benchmarks: loopback only, every number bounded.  t/bench/hostile/hostile.h says
 * which file does what. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "t/bench/hostile/hostile.h"

int
main(int argc, char **argv)
{
	struct rlimit rl;
	uint64_t started;

	options_read(argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	prctl(PR_SET_TIMERSLACK, 1);
	started = clock_ns();
	engine_run();
	report((double)(clock_ns() - started) / 1e9);
	return (0);
}
