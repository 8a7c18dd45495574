/* nginx/received.c -- descriptors that the accelerator has opened come with its bytes.
 *
 * Exactly one is taken, while a question that wants one is out.  All others are closed. */
#include "nginx/stat_accel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 4 /* with one reception; with more the kernel says MSG_CTRUNC */

/* False: it was closed. */
static bool
take(int fd, struct accel_question *q)
{
	if (q != NULL && q->name.open && q->fd < 0) {
		q->fd = fd;
		return (true);
	}
	close(fd);
	return (false);
}

static bool
take_all(struct msghdr *m, struct accel_question *q)
{
	bool good = (m->msg_flags & MSG_CTRUNC) == 0;
	struct cmsghdr *c;
	size_t n;
	int fd;

	for (c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (size_t i = 0; i < n; i++) {
			ngx_memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			good = take(fd, good ? q : NULL) && good;
		}
	}
	return (good);
}

ssize_t
accel_receive(int fd, u_char *to, size_t size, struct accel_question *q, bool *good)
{
	union {
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { to, size };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return (errno == EAGAIN ? NGX_AGAIN : NGX_ERROR);
	*good = take_all(&m, q);
	return (n);
}

static bool
is_readable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return (flags >= 0 && (flags & (O_ACCMODE | O_PATH)) == O_RDONLY);
}

/* The accelerator has just looked the file up, so the kernel knows its attributes; fstat(2) may ask
 * the server again where each open() asks.  FUSE, NFS, Ceph and SMB do not ask then.  9p and others
 * that do not know AT_STATX_DONT_SYNC do, and may wait. */
enum accel_kind
accel_received(struct accel_question *q)
{
	struct statx st;

	if (!is_readable(q->fd) ||
	    statx(q->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) != 0)
		return (ACCEL_COLD);
	q->st.st_mode = st.stx_mode;
	q->st.st_ino = st.stx_ino;
	q->st.st_mtime = st.stx_mtime.tv_sec;
	q->st.st_size = (off_t)st.stx_size;
	return (S_ISDIR(st.stx_mode) ? ACCEL_DIR : ACCEL_FILE);
}
