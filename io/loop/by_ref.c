/* io/loop/by_ref.c -- see by_ref.h */
#include "io/loop/by_ref.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PIPE     (512 << 10) /* bytes at a time */
#define PIPE_MIN (64 << 10)

void
by_ref_none(struct by_ref *r)
{
	*r = (struct by_ref){ -1, -1, -1 };
}

static void
shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
by_ref_fini(struct by_ref *r)
{
	shut(&r->in);
	shut(&r->out);
	shut(&r->null);
}

/* Makes the pipe as large as it may be.  A pipe of two pages, which the kernel gives to users that
 * have too many (fs.pipe-user-pages-soft), is slower than copying. */
static bool
open_pipe(struct by_ref *r)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return (false);
	r->out = p[0];
	r->in = p[1];
	(void)fcntl(r->in, F_SETPIPE_SZ, PIPE);
	return (fcntl(r->in, F_GETPIPE_SZ) >= PIPE_MIN);
}

void
by_ref_init(struct by_ref *r)
{
	by_ref_none(r);
	r->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (r->null < 0 || !open_pipe(r))
		by_ref_fini(r);
}

/* The socket is full: empties the pipe.  The bytes are put into the pipe again when the socket has
 * room. */
static void
drain(struct by_ref *r, size_t left)
{
	ssize_t n = 1;

	while (left > 0 && n > 0) {
		n = splice(r->out, NULL, r->null, NULL, left, SPLICE_F_NONBLOCK);
		left -= n > 0 ? (size_t)n : 0;
	}
	if (left > 0)
		by_ref_fini(r); /* bytes of one client must not reach another */
}

/* Fills the pipe once.  Returns the bytes that the socket took; *put: bytes that were in the
 * pipe. */
static int64_t
send_some(struct by_ref *r, int sock, const struct iovec *iov, int n, bool more, ssize_t *put)
{
	size_t left, done = 0;
	ssize_t k = 0;

	*put = vmsplice(r->in, iov, (size_t)n, SPLICE_F_NONBLOCK);
	if (*put <= 0)
		return (*put < 0 ? -errno : 0);
	for (left = (size_t)*put; left > 0; left -= (size_t)k, done += (size_t)k) {
		do
			k = splice(r->out, NULL, sock, NULL, left,
			    SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0));
		while (k < 0 && errno == EINTR);
		if (k <= 0)
			break;
	}
	if (left > 0) {
		int err = errno;

		drain(r, left);
		errno = err;
	}
	return (done > 0 ? (int64_t)done : k < 0 ? -errno : 0);
}

/* Leaves out the first k bytes. */
static void
skip(struct iovec **iov, int *n, size_t k)
{
	while (*n > 0 && k >= (*iov)->iov_len) {
		k -= (*iov)->iov_len;
		(*iov)++;
		(*n)--;
	}
	if (k > 0) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + k;
		(*iov)->iov_len -= k;
	}
}

static size_t
total(const struct iovec *iov, int n)
{
	size_t sum = 0;

	while (n > 0)
		sum += iov[--n].iov_len;
	return (sum);
}

int64_t
by_ref_send(struct by_ref *r, int sock, const struct iovec *parts, int n, bool more, bool *full)
{
	struct iovec copy[BY_REF_PARTS], *iov = copy;
	size_t left, done = 0;
	ssize_t put;
	int64_t k;

	*full = false;
	if (r->in < 0 || n > (int)BY_REF_PARTS)
		return (-ENOSYS);
	left = total(parts, n);
	memcpy(copy, parts, (size_t)n * sizeof(*parts));
	while (n > 0) {
		k = send_some(r, sock, iov, n, more || left > PIPE, &put);
		if (put < 0 && (errno == ENOSYS || errno == EPERM))
			by_ref_fini(r); /* this system cannot do it */
		if (put <= 0)
			return (done > 0 ? (int64_t)done : -ENOSYS);
		*full = k < put;
		if (k <= 0)
			return (done > 0 ? (int64_t)done : k);
		done += (size_t)k;
		left -= (size_t)k;
		if (*full)
			break;
		skip(&iov, &n, (size_t)k);
	}
	return ((int64_t)done);
}
