/* io/memory/memory.c -- see memory.h */
#include "io/memory/memory.h"

#include <pthread.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "io/memory/cgroup.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t limit = UINT64_MAX;

bool
io_memory_limit_parse(struct text t, uint64_t *bytes)
{
	struct text line;
	uint64_t n;

	if (!text_next(&t, '\n', &line) || text_u64(line, &n) != 0 || n == 0)
		return (false);
	*bytes = n;
	return (true);
}

static void
take(uint64_t bytes)
{
	if (bytes != 0 && bytes < limit)
		limit = bytes;
}

static void
take_file(const struct cgroup *c, const char *name)
{
	int fd = cgroup_open(c, name);
	char text[64];
	uint64_t bytes;
	ssize_t n;

	if (fd < 0)
		return;
	n = pread(fd, text, sizeof(text), 0);
	if (n > 0 && io_memory_limit_parse((struct text){ text, (size_t)n }, &bytes))
		take(bytes);
	close(fd);
}

static void
take_all(void)
{
	static const char *const name[CGROUP_KINDS] = { "memory.limit_in_bytes", "memory.max" };
	struct sysinfo si;
	struct cgroup c;
	int kind;

	if (sysinfo(&si) == 0)
		take((uint64_t)si.totalram * si.mem_unit);
	for (kind = 0; kind < CGROUP_KINDS; kind++) {
		if (!cgroup_find((enum cgroup_kind)kind, &c))
			continue;
		do
			take_file(&c, name[kind]);
		while (cgroup_up(&c));
	}
}

uint64_t
io_memory_limit(void)
{
	(void)pthread_once(&once, take_all);
	return (limit);
}
