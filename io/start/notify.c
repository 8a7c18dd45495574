/* io/start/notify.c -- see notify.h */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "io/start/notify.h"

/* A manager that works reads within microseconds.  One that hangs must not hold the caller, which
 * would take no signal any more. */
#define PATIENCE_US 200000

static int sock = -1;

void
notify_open(void)
{
	const struct timeval patience = { .tv_usec = PATIENCE_US };

	if (sock >= 0 || getenv("NOTIFY_SOCKET") == NULL)
		return;
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock >= 0)
		(void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

bool
notify_is_heard(void)
{
	return (getenv("NOTIFY_SOCKET") != NULL);
}

void
notify_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t n;

	if (path == NULL || (n = strlen(path)) >= sizeof(un.sun_path) || n == 0)
		return;
	memcpy(un.sun_path, path, n);
	if (un.sun_path[0] == '@')
		un.sun_path[0] = '\0';
	notify_open();
	if (sock >= 0)
		(void)sendto(sock, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&un,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
}

void
notify_reloading(void)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
	    clock_mono_ns() / 1000);
	notify_manager(state);
}

static bool
env_u64(const char *name, uint64_t *n)
{
	const char *s = getenv(name);

	return (s != NULL && text_u64(text_of(s), n) == 0);
}

/* $WATCHDOG_PID tells a child that the manager watches its parent. */
uint64_t
notify_watchdog_ns(void)
{
	uint64_t us, pid;

	if (!env_u64("WATCHDOG_USEC", &us) || us > UINT64_MAX / 1000)
		return (0);
	if (getenv("WATCHDOG_PID") != NULL &&
	    (!env_u64("WATCHDOG_PID", &pid) || pid != (uint64_t)getpid()))
		return (0);
	return (us * 1000);
}
