/* io/tls/bio.c -- how OpenSSL reads and writes: see impl.h */
#include <errno.h>
#include <sys/socket.h>
#include "io/tls/impl.h"

/* Of records that the socket has not taken: more than a batch of link.c. */
#define OUT_MAX (1u << 20)

static BIO_METHOD *method;

/* In a handshake it is whole records; its end may come before that of `in`. */
static size_t
in_memory(const struct tls_link *l)
{
	return ((l->fd < 0 ? l->in_whole : l->in.n) - l->in_at);
}

static int
from_memory(struct tls_link *l, char *p, size_t n)
{
	size_t left = in_memory(l);

	n = n < left ? n : left;
	memcpy(p, l->in.p + l->in_at, n);
	l->in_at += n;
	if (l->in_at == l->in.n) {
		buf_free(&l->in);
		l->in_at = l->in_whole = 0;
	}
	return ((int)n);
}

/* -1: nothing now; 0: never more. */
static int
from_socket(struct tls_link *l, char *p, size_t n)
{
	ssize_t k;

	if (l->err != 0 || l->end)
		return (0);
	do
		k = recv(l->fd, p, n, MSG_DONTWAIT);
	while (k < 0 && errno == EINTR);
	if (k < 0 && errno != EAGAIN) {
		l->err = -errno;
		return (0);
	}
	l->end = k == 0;
	l->drained = k < 0 || ((size_t)k < n && !l->hung && k > 0);
	return ((int)k);
}

static int
bio_read(BIO *b, char *p, int n)
{
	struct tls_link *l = BIO_get_data(b);
	int k = -1;

	BIO_clear_retry_flags(b);
	if (n <= 0)
		return (0);
	if (in_memory(l) != 0)
		return (from_memory(l, p, (size_t)n));
	if (l->fd >= 0 && !l->drained)
		k = from_socket(l, p, (size_t)n);
	if (k < 0)
		BIO_set_retry_read(b);
	return (k);
}

static int
bio_write(BIO *b, const char *p, int n)
{
	struct tls_link *l = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (n <= 0)
		return (0);
	buf_add(&l->out, p, (size_t)n);
	return (l->out.failed ? -1 : n);
}

static long
bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	const struct tls_link *l = BIO_get_data(b);

	if (cmd == BIO_CTRL_EOF)
		return (l->end || l->err != 0);
	return (cmd == BIO_CTRL_FLUSH);
}

int
tls_bio_prepare(void)
{
	if (method != NULL)
		return (0);
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stat-accel");
	if (method == NULL)
		return (-ENOMEM);
	BIO_meth_set_read(method, bio_read);
	BIO_meth_set_write(method, bio_write);
	BIO_meth_set_ctrl(method, bio_ctrl);
	return (0);
}

BIO *
tls_bio_new(struct tls_link *l)
{
	BIO *b = BIO_new(method);

	if (b == NULL)
		return (NULL);
	l->out.max = OUT_MAX;
	BIO_set_data(b, l);
	BIO_set_init(b, 1);
	return (b);
}
