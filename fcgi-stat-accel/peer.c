#include "fcgi-stat-accel/peer.h"

#include <sys/socket.h>
#include <unistd.h>

bool
peer_user(int fd, uid_t *user)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || who.uid == (uid_t)-1)
		return (false);
	*user = who.uid;
	return (true);
}

bool
peer_is_own_user(int fd)
{
	uid_t user;

	return (peer_user(fd, &user) && user == geteuid());
}
