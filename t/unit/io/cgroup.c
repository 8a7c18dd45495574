/* t/unit/io/cgroup.c -- where the memory files of the process's own cgroup are,
 * and the limit they give. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>
#include "io/memory/cgroup.h"
#include "io/memory/memory.h"
#include "t/unit/test.h"

static const char hybrid[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:5 master:2 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n";
static const char both[] = "9:name=systemd:/x\n4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/u/v.service\n";

static bool
parse(enum cgroup_kind kind, const char *own, const char *mounts, struct cgroup *c)
{
	return (cgroup_parse(kind, text_of(own), text_of(mounts), c));
}

TEST("/cgroup/both-kinds")
{
	struct cgroup c;

	g_assert_true(parse(CGROUP_V1, both, hybrid, &c));
	g_assert_cmpstr(c.path, ==, "/sys/fs/cgroup/memory/a/b");
	g_assert_true(cgroup_up(&c));
	g_assert_cmpstr(c.path, ==, "/sys/fs/cgroup/memory/a");
	g_assert_true(cgroup_up(&c));
	g_assert_cmpstr(c.path, ==, "/sys/fs/cgroup/memory");
	g_assert_false(cgroup_up(&c));
	g_assert_true(parse(CGROUP_V2, both, hybrid, &c));
	g_assert_cmpstr(c.path, ==, "/sys/fs/cgroup/unified/u/v.service");
	g_assert_true(parse(CGROUP_V1, "3:cpu,memory:/\n", hybrid, &c));
	g_assert_cmpstr(c.path, ==, "/sys/fs/cgroup/memory");
	g_assert_false(cgroup_up(&c));
}

/* The mount of a container begins at its own cgroup. */
TEST("/cgroup/container")
{
	static const char table[] = "1 2 0:3 /docker/77 /cg\\040x ro - cgroup cgroup rw,memory\n"
				    "1 2 0:4 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
	struct cgroup c;

	g_assert_true(parse(CGROUP_V1, "4:memory:/docker/77\n", table, &c));
	g_assert_cmpstr(c.path, ==, "/cg x");
	g_assert_true(parse(CGROUP_V1, "4:memory:/docker/77/in\n", table, &c));
	g_assert_cmpstr(c.path, ==, "/cg x/in");
	g_assert_true(cgroup_up(&c));
	g_assert_false(cgroup_up(&c));
	g_assert_false(parse(CGROUP_V1, "4:memory:/docker/7\n", table, &c));
	g_assert_false(parse(CGROUP_V1, "4:memory:/docker/778\n", table, &c));
	g_assert_false(parse(CGROUP_V1, "4:memory:/docker/77/../78\n", table, &c));
	g_assert_false(parse(CGROUP_V2, "0::/\n", table, &c)); /* above the namespace */
}

TEST("/cgroup/hostile")
{
	static const char *const own[] = { "", "\n", ":", "::", "0::", "0:x:/a", "4:memory",
		"4:memory:", "4:memory:a", "4:memories:/a", "00::/a" };
	static const char *const table[] = { "", "\n", "-", " - ", "1 2 3 4 5 6", "1 2 3 / /a -",
		"1 2 3 / /a - cgroup", "1 2 3 / /a - cgroup cgroup",
		"1 2 3 / relative - cgroup cgroup memory",
		"1 2 3 / /a - cgroup cgroup memoryless" };
	g_autofree char *deep = g_strnfill(5000, 'd'),
			*line = g_strdup_printf("4:memory:/%s", deep),
			*point = g_strdup_printf("1 2 3 / /%s - cgroup cgroup memory", deep);
	struct cgroup c;
	size_t i, n;

	for (i = 0; i < G_N_ELEMENTS(own); i++) {
		g_assert_false(parse(CGROUP_V1, own[i], hybrid, &c));
		g_assert_false(parse(CGROUP_V2, own[i], hybrid, &c));
	}
	for (i = 0; i < G_N_ELEMENTS(table); i++)
		g_assert_false(parse(CGROUP_V1, both, table[i], &c));
	g_assert_false(parse(CGROUP_V1, line, hybrid, &c));
	g_assert_false(parse(CGROUP_V1, both, point, &c));
	for (n = 0; n < sizeof(hybrid);
	     n++) /* cut anywhere; exactly allocated, for AddressSanitizer */
	{
		g_autofree char *cut = g_memdup2(hybrid, n + 1);

		cut[n] = '\0';
		(void)cgroup_parse(CGROUP_V2, text_of(both), (struct text){ cut, n }, &c);
	}
}

TEST("/memory/limit-text")
{
	static const char *const bad[] = { "", "max\n", "0\n", "-1\n", " 1\n", "1 2\n",
		"99999999999999999999999\n" };
	uint64_t v = 5;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_false(io_memory_limit_parse(text_of(bad[i]), &v));
	g_assert_cmpuint(v, ==, 5);
	g_assert_true(io_memory_limit_parse(text_of("50331648\n"), &v));
	g_assert_cmpuint(v, ==, 50331648);
}

/* In a cgroup of our own below the one of v1, where we may make one; its parent has the limit. */
static void
limited(const char *top)
{
	g_autofree char *outer = g_strdup_printf("%s/io-memory-%d", top, (int)getpid()),
			*inner = g_strdup_printf("%s/in", outer),
			*limit = g_strdup_printf("%s/memory.limit_in_bytes", outer),
			*procs = g_strdup_printf("%s/cgroup.procs", inner);
	int status, made = mkdir(outer, 0755);
	pid_t pid;

	if (made != 0 || mkdir(inner, 0755) != 0 ||
	    !g_file_set_contents_full(limit, "48M", -1, G_FILE_SET_CONTENTS_NONE, 0644, NULL)) {
		if (made == 0)
			rmdir(outer);
		g_test_skip("no rights to make a cgroup");
		return;
	}
	pid = fork();
	if (pid == 0)
		_exit(g_file_set_contents_full(procs, "0", -1, G_FILE_SET_CONTENTS_NONE, 0644,
			  NULL) &&
			      io_memory_limit() == 48u << 20
			  ? 0
			  : 1);
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	g_assert_cmpint(rmdir(inner), ==, 0);
	g_assert_cmpint(rmdir(outer), ==, 0);
	g_assert_cmpint(status, ==, 0);
}

TEST("/memory/own-limit")
{
	struct cgroup c;
	struct sysinfo si;

	if (cgroup_find(CGROUP_V1, &c)) {
		c.path[c.top] = '\0';
		limited(c.path);
	}
	g_assert_cmpint(sysinfo(&si), ==, 0);
	g_assert_cmpuint(io_memory_limit(), >, 0);
	g_assert_cmpuint(io_memory_limit(), <=, (uint64_t)si.totalram * si.mem_unit);
}
