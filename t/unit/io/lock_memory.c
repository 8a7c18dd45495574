/* t/unit/io/lock_memory.c -- what is locked under a limit, by a process without rights. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/start/lock_memory.h"
#include "t/unit/test.h"

#define NOBODY  65534
#define MIB     (1u << 20)
#define UNKNOWN 77

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKS false /* sanitizers lock nothing */
#else
#define LOCKS true
#endif

static int
in_child(uint64_t limit, int (*run)(void))
{
	struct rlimit rl = { limit, limit };
	int status;
	pid_t pid = fork();

	g_assert_cmpint(pid, >=, 0);
	if (pid == 0) {
		if (setrlimit(RLIMIT_MEMLOCK, &rl) != 0)
			_exit(UNKNOWN);
		_exit(geteuid() == 0 && setuid(NOBODY) != 0 ? UNKNOWN : run());
	}
	g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
	return (WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int
run_all(void)
{
	struct lock_memory lm;
	void *p;

	lock_memory_program(&lm, true);
	lock_memory_rest(&lm);
	p = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return (p == MAP_FAILED             ? 1
		: lm.rest                   ? 2
		: lm.rest_err != -ENOMEM    ? 3
		: lm.limit != 8 * MIB       ? 4
		: lm.program + lm.left == 0 ? 5
					    : 0);
}

/* 8 MiB are more than this program maps, which is what mlockall(2) itself compares. */
static void
test_all(void)
{
	int status = in_child(8 * MIB, run_all);

	if (status == UNKNOWN)
		g_test_skip("the limit is lower here");
	else
		g_assert_cmpint(status, ==, 0);
}

static int
run_none(void)
{
	struct lock_memory lm;

	lock_memory_program(&lm, true);
	return (lm.program != 0 ? 1 : lm.left == 0 ? 2 : lm.err != -EPERM ? 3 : 0);
}

static void
test_none(void)
{
	g_assert_cmpint(in_child(0, run_none), ==, 0);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	if (LOCKS) {
		g_test_add_func("/lock_memory/all under a limit: later memory is there", test_all);
		g_test_add_func("/lock_memory/no locked memory allowed", test_none);
	}
	return (tests_run());
}
