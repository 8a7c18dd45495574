#include "fcgi-stat-accel/peer.h"

#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUPS_MAX 1024 /* of a peer; with more it counts as different */

static gid_t own[GROUPS_MAX + 1];
static size_t nown;

void
peer_begin(void)
{
	int n = getgroups(GROUPS_MAX, own);

	nown = n > 0 ? (size_t)n : 0;
	own[nown++] = getegid();
}

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

static bool
is_own_group(gid_t group)
{
	for (size_t i = 0; i < nown; i++)
		if (own[i] == group)
			return (true);
	return (false);
}

bool
peer_has_own_groups(int fd)
{
	gid_t groups[GROUPS_MAX];
	struct ucred who;
	socklen_t len = sizeof(who), size = sizeof(groups);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return (false);
	for (size_t i = 0; i < size / sizeof(gid_t); i++)
		if (!is_own_group(groups[i]))
			return (false);
	return (is_own_group(who.gid));
}
