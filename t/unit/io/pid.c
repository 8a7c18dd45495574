/* t/unit/io/pid.c -- a process by its number, only while it runs the program it is taken for. */
#include "io/start/pid.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child with this name, which waits for a signal. */
static pid_t
child(const char *name)
{
	int ready[2];
	char byte;
	pid_t pid;

	g_assert_cmpint(pipe(ready), ==, 0);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		prctl(PR_SET_NAME, name);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
	close(ready[0]);
	close(ready[1]);
	return (pid);
}

static void
test_signal(void)
{
	pid_t pid = child("fcgi-stat-accel");
	struct pollfd p = { .fd = pid_open(pid, "fcgi-stat-accel"), .events = POLLIN };

	g_assert_cmpint(p.fd, >=, 0);
	g_assert_cmpint(poll(&p, 1, 0), ==, 0);
	g_assert_cmpint(pid_signal(p.fd, SIGKILL), ==, 0);
	g_assert_cmpint(poll(&p, 1, 60000), ==, 1);
	g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
	g_assert_cmpint(pid_signal(p.fd, SIGKILL), ==, -ESRCH);
	close(p.fd);
	g_assert_cmpint(pid_open(pid, "fcgi-stat-accel"), ==, -ESRCH);
}

static void
test_another_program(void)
{
	pid_t pid = child("accel-server");

	g_assert_cmpint(pid_open(pid, "accel-serve"), ==, -ESRCH);
	g_assert_cmpint(pid_open(pid, "accel-server2"), ==, -ESRCH);
	kill(pid, SIGKILL);
	g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

int
main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/pid/signal", test_signal);
	g_test_add_func("/pid/another-program", test_another_program);
	return (g_test_run());
}
