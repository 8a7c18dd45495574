/* server/helper/wire.c -- see wire.h */
#include "server/helper/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "io/tls/keys.h"

#define FDS_MAX 4 /* the kernel drops further ones and sets MSG_CTRUNC */

size_t
helper_request_make(enum helper_kind kind, const char *name, char dst[HELPER_NAME_MAX + 1])
{
	size_t n = strlen(name);

	if (n >= HELPER_NAME_MAX)
		return (0);
	dst[0] = (char)kind;
	memcpy(dst + 1, name, n);
	return (n + 1);
}

int
helper_request_parse(const char *p, size_t n, struct helper_request *r)
{
	if (n < 1 || n > HELPER_NAME_MAX || p[0] < HELPER_LOAD || p[0] >= HELPER_KINDS)
		return (-EINVAL);
	if (memchr(p + 1, '\0', n - 1) != NULL ||
	    (n == 1) != (p[0] == HELPER_LOAD || p[0] == HELPER_UPGRADE))
		return (-EINVAL);
	r->kind = (enum helper_kind)p[0];
	memcpy(r->name, p + 1, n - 1);
	r->name[n - 1] = '\0';
	return (0);
}

static bool
is_string(const char *s, size_t size)
{
	return (memchr(s, '\0', size) != NULL);
}

int
helper_name_parse(const void *p, size_t n, struct helper_name *to)
{
	if (n != sizeof(*to))
		return (-EPROTO);
	memcpy(to, p, sizeof(*to));
	if (!is_string(to->name, sizeof(to->name)) ||
	    !is_string(to->congestion, sizeof(to->congestion)))
		return (-EPROTO);
	if (to->keys > TLS_KEY_SIGNS_AND_DECRYPTS)
		return (-EPROTO);
	switch (to->kind) {
	case HELPER_LOG:
	case HELPER_LISTEN:
	case HELPER_RESOLVE:
	case HELPER_SPAWN:
	case HELPER_CONTROL:
	case HELPER_REMOVE_PIDFILE:
	case HELPER_CGI_PROGRAM:
	case HELPER_CGI_ROOT:
	case HELPER_CGI_VARIABLE:
	case HELPER_CGI_USER:
	case HELPER_CERTIFICATE:
	case HELPER_PIDFILE: return (to->name[0] != '\0' ? 0 : -EPROTO);
	case HELPER_LOAD:
		return (to->timeout_ms > 0 && to->timeout_ms <= HELPER_LOAD_MAX_MS ? 0 : -EPROTO);
	default: return (-EPROTO);
	}
}

int
helper_result_parse(const void *p, size_t n, char why[HELPER_WHY_MAX])
{
	int32_t res;

	why[0] = '\0';
	if (n < sizeof(res) || n - sizeof(res) >= HELPER_WHY_MAX)
		return (-EPROTO);
	memcpy(&res, p, sizeof(res));
	memcpy(why, (const char *)p + sizeof(res), n - sizeof(res));
	why[n - sizeof(res)] = '\0';
	return (res <= 0 && res >= -ERRNO_MAX ? res : -EPROTO);
}

int
helper_addresses_parse(const struct helper_addresses *a, size_t n, char why[HELPER_WHY_MAX])
{
	const size_t head = offsetof(struct helper_addresses, v);
	size_t len = n > head ? n - head : 0, count = len / sizeof(a->v[0]);

	why[0] = '\0';
	if (n < sizeof(a->err))
		return (-EPROTO);
	if (a->err != 0) {
		snprintf(why, HELPER_WHY_MAX, "%.*s", (int)len, (const char *)a->v);
		return (a->err < 0 && a->err >= -ERRNO_MAX ? a->err : -EPROTO);
	}
	if (len % sizeof(a->v[0]) != 0 || !address_are_inet(a->v, count))
		return (-EPROTO);
	return ((int)count);
}

int
helper_upgraded_parse(const void *p, size_t n, struct helper_upgraded *to)
{
	int32_t head[2];

	if (n < sizeof(head) || n > sizeof(head) + HELPER_CAUSE_MAX)
		return (-EPROTO);
	memcpy(head, p, sizeof(head));
	to->status = head[0];
	to->pid = head[1];
	to->cause = (struct text){ (const char *)p + sizeof(head), n - sizeof(head) };
	return (to->status >= 0 && to->status < 256 && to->pid > 0 ? 0 : -EPROTO);
}

int
helper_send(int sock, const void *p, size_t n, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { (void *)(uintptr_t)p, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fd >= 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	return (sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0);
}

/* Keeps the first descriptor and closes the others; returns their number. */
static size_t
take_descriptors(struct msghdr *msg, int *fd)
{
	struct cmsghdr *c;
	size_t i, n, all = 0;
	int one;

	for (c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++, all++) {
			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (all == 0)
				*fd = one;
			else
				close(one);
		}
	}
	return (all);
}

ssize_t
helper_recv(int sock, void *p, size_t size, int *fd)
{
	union {
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { p, size };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room) };
	size_t fds;
	ssize_t n;

	*fd = -1;
	n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return (-errno);
	fds = take_descriptors(&msg, fd);
	if (fds > 1 || (msg.msg_flags & MSG_CTRUNC) != 0) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		return (-EINVAL);
	}
	return ((msg.msg_flags & MSG_TRUNC) != 0 ? -EMSGSIZE : n);
}
