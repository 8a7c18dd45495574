/* io/load.c -- how busy the machine is. */
#include <sys/sysinfo.h>
#include "io/io.h"

unsigned
io_machine_load(void)
{
	struct sysinfo si;

	if (sysinfo(&si) != 0)
		return (0);
	return ((unsigned)(si.loads[0] * 100 >> SI_LOAD_SHIFT));
}
