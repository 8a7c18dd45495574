/* io/memory/process_status.c -- see process_status.h */
#include "io/memory/process_status.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

static int fds = -1, memory = -1; /* /proc/self/fd, /proc/self/statm */

void
process_status_open(void)
{
	if (fds < 0)
		fds = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (memory < 0)
		memory = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

static uint64_t
try_numbers(uint64_t limit)
{
	uint64_t n = 0;
	int fd;

	if (limit > PROCESS_STATUS_FDS)
		limit = PROCESS_STATUS_FDS;
	for (fd = 0; fd < (int)limit; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return (n);
}

/* Since Linux 6.2 the size of the directory is the number of its entries. */
static uint64_t
count_fds(uint64_t limit)
{
	struct stat st;

	if (fstat(fds, &st) == 0 && st.st_size > 0)
		return ((uint64_t)st.st_size);
	return (try_numbers(limit));
}

static void
descriptors(const struct prom *p)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	prom_gauge(p, "open_fds", "Number of open file descriptors.", count_fds(limit.rlim_cur));
	prom_gauge(p, "max_fds", "Maximum number of open file descriptors.", limit.rlim_cur);
}

static void
bytes(const struct prom *p)
{
	uint64_t size, resident, page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[128];
	ssize_t n = pread(memory, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return;
	text[n] = '\0';
	if (sscanf(text, "%" SCNu64 " %" SCNu64, &size, &resident) != 2)
		return;
	prom_gauge(p, "virtual_memory_bytes", "Virtual memory size in bytes.", size * page);
	prom_gauge(p, "resident_memory_bytes", "Resident memory size in bytes.", resident * page);
}

void
process_status_metrics(struct buf *out, uint64_t started_s)
{
	const struct prom prefixed = { out, "process" }, *p = &prefixed;
	uint64_t cpu_ns = clock_process_cpu_ns();

	prom_family(p, "cpu_seconds_total", "counter",
	    "Total user and system CPU time spent in seconds.");
	prom_name(p, "cpu_seconds_total");
	buf_printf(out, " %llu.%09llu\n", cpu_ns / NS_PER_S, cpu_ns % NS_PER_S);
	descriptors(p);
	bytes(p);
	prom_gauge(p, "start_time_seconds",
	    "Start time of the process since unix epoch in seconds.", started_s);
}
