/* server/helper/log_program.c -- starts the command of a log; see io/log/logfile.h.
 *
 *   server --pipe--> command
 *
 * It runs in a session of its own: neither a signal for the server nor the deadline of the request
 * reaches it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/start/become.h"
#include "server/helper/impl.h"

/* Checks the program of a command that begins with its absolute path, so that a missing one is an
 * error at start. */
static int
check(const char *command)
{
	char program[HELPER_NAME_MAX];
	size_t n;

	command += strspn(command, " ");
	if (strncmp(command, "exec ", 5) == 0)
		command += 5 + strspn(command + 5, " ");
	n = strcspn(command, " \t;|&<>()$`\\\"'*?[]{}~");
	if (command[0] != '/' || n >= sizeof(program))
		return (command[0] != '\0' ? 0 : -EINVAL);
	memcpy(program, command, n);
	program[n] = '\0';
	return (access(program, X_OK) == 0 ? 0 : -errno);
}

bool
helper_become(const struct helper_name *n)
{
	return (!n->set_owner || become(NULL, n->uid, n->gid) == 0);
}

static _Noreturn void
run(const struct helper_name *n, int in)
{
	int null = open("/dev/null", O_WRONLY);

	setsid();
	if (null < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    !helper_become(n))
		_exit(126);
	(void)syscall(SYS_close_range, 3u, ~0u, 0u);
	execl("/bin/sh", "sh", "-c", n->name + 1, (char *)NULL);
	_exit(127);
}

int
helper_log_program(const struct helper_name *n)
{
	int end[2], err = check(n->name + 1);
	pid_t pid;

	if (err != 0)
		return (err);
	if (pipe2(end, O_CLOEXEC) != 0)
		return (-errno);
	pid = fork();
	if (pid == 0)
		run(n, end[0]);
	err = pid < 0 ? -errno : fcntl(end[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	close(end[0]);
	if (err == 0)
		return (end[1]);
	close(end[1]);
	return (err);
}
