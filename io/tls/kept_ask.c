/* io/tls/kept_ask.c -- asks the process that keeps private keys.
 *
 * Each thread has a socket of its own, and waits for its answer there: no queue, no lock, and as
 * many signatures at a time as there are threads of handshakes.  A socket that failed is closed,
 * and the thread asks for another one: the process may have been started anew.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include "io/tls/kept.h"

static __thread const char *fault; /* of the last question; NULL: none */

static int (*reach)(void *arg);
static void *reach_arg;
static pthread_key_t sockets; /* of each thread: the descriptor + 1; NULL: none */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_sockets;

void
tls_keys_reach(int (*connect)(void *arg), void *arg)
{
	reach = connect;
	reach_arg = arg;
}

static void
thread_ends(void *fd)
{
	close((int)(intptr_t)fd - 1);
}

static void
prepare(void)
{
	has_sockets = pthread_key_create(&sockets, thread_ends) == 0;
}

/* A descriptor, or -errno. */
static int
new_socket(void)
{
	const struct timeval limit = { .tv_sec = TLS_KEY_ASK_MS / 1000 };
	int fd = reach != NULL ? reach(reach_arg) : -EPIPE;

	if (fd < 0)
		return (fd);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (pthread_setspecific(sockets, (void *)(intptr_t)(fd + 1)) == 0)
		return (fd);
	close(fd);
	return (-ENOMEM);
}

/* That of this thread. */
static int
socket_now(void)
{
	int fd = (int)(intptr_t)pthread_getspecific(sockets) - 1;

	return (fd >= 0 ? fd : new_socket());
}

/* Bytes, or -errno; -EPIPE: the process has ended. */
static int
exchange(int fd, const struct tls_key_question *q, unsigned char *answer, size_t size)
{
	int32_t res = 0;
	struct iovec v[2] = { { &res, sizeof(res) }, { answer, size } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t k;

	if (send(fd, q, offsetof(struct tls_key_question, bytes) + q->n,
		MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return (errno == ECONNRESET ? -EPIPE : -errno);
	do
		k = recvmsg(fd, &m, 0);
	while (k < 0 && errno == EINTR);
	if (k <= 0)
		return (k == 0 || errno == ECONNRESET ? -EPIPE
			: errno == EAGAIN             ? -ETIMEDOUT
						      : -errno);
	if (k < (ssize_t)sizeof(res) || (m.msg_flags & MSG_TRUNC) != 0 ||
	    (res > 0 && k - (ssize_t)sizeof(res) != res))
		return (-EPROTO);
	return (res);
}

/* An answer of the process itself leaves the socket as it was; any other failure may leave an
 * answer that comes late. */
static bool
is_answer(int k)
{
	return (k >= 0 || k == -ENOENT || k == -EPERM || k == -EINVAL || k == -EIO);
}

static int
try(const struct tls_key_question *q, unsigned char *answer, size_t size)
{
	int fd = socket_now(), k;

	if (fd < 0)
		return (fd);
	k = exchange(fd, q, answer, size);
	if (!is_answer(k)) {
		(void)pthread_setspecific(sockets, NULL);
		close(fd);
	}
	return (k);
}

static const char *
fault_of(int k)
{
	switch (k) {
	case -ETIMEDOUT: return ("the process with the private keys does not answer");
	case -ENOENT: return ("the process with the private keys does not have this one");
	case -EPERM: return ("the process with the private keys does not decrypt with this one");
	case -EMFILE:
	case -ENFILE: return ("no descriptors are left; raise server.max-fds");
	case -EIO: return ("the process with the private keys could not use this one");
	}
	return ("the process with the private keys cannot be reached");
}

int
tls_keys_ask(const struct tls_key_question *q, unsigned char *answer, size_t size)
{
	int k;

	(void)pthread_once(&once, prepare);
	k = has_sockets ? try(q, answer, size) : -ENOMEM;
	if (k == -EPIPE) /* it has been started anew */
		k = try(q, answer, size);
	fault = k < 0 ? fault_of(k) : NULL;
	return (k);
}

const char *
tls_keys_fault(void)
{
	const char *is = fault;

	fault = NULL;
	return (is);
}
