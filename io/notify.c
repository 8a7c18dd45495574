/* io/notify.c -- see notify.h */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "io/notify.h"

static int sock = -1;

void
notify_open(void)
{
	if (sock < 0 && getenv("NOTIFY_SOCKET") != NULL)
		sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
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
