#include "fcgi-stat-accel/signals.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static const int caught[] = { SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGHUP, SIGUSR2 };
static int near_end = -1;

/* When nobody takes the first hundred of them, the next one is not missed. */
static void
note(int number)
{
	const int saved = errno;
	const unsigned char byte = (unsigned char)number;

	(void)!send(near_end, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	errno = saved;
}

static void
catch_all(void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	sigfillset(&sa.sa_mask);
	for (size_t i = 0; i < G_N_ELEMENTS(caught); i++)
		sigaction(caught[i], &sa, NULL);
}

int
signals_open(int *fdp)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) < 0)
		return (-errno);
	near_end = fd[0];
	*fdp = fd[1];
	catch_all(note);
	signal(SIGPIPE, SIG_IGN);
	return (0);
}

void
signals_close(int fd)
{
	catch_all(SIG_IGN);
	close(near_end);
	close(fd);
	near_end = -1;
}
