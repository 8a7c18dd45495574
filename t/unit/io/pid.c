/* t/unit/io/pid.c -- a process by its number, only while it runs the program it is taken for. */
#include "io/start/pid.h"
#include "t/unit/test.h"

#include <errno.h>
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

TEST("/pid/signal")
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

TEST("/pid/another-program")
{
	pid_t pid = child("accel-server");

	g_assert_cmpint(pid_open(pid, "accel-serve"), ==, -ESRCH);
	g_assert_cmpint(pid_open(pid, "accel-server2"), ==, -ESRCH);
	kill(pid, SIGKILL);
	g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}
