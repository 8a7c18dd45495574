/* io/transport.h -- inside io/ only: what carries the bytes of a socket, if not the kernel
 * alone.
 *
 *   IO_HANDSHAKE --> op->handshake.with: begin(), try() --> sock->transport
 *   IO_RECV      --> receive()
 *   IO_SEND      --> send()
 *   io_sock_shutdown() --> say_end(), then FIN
 *   IO_CLOSE     --> free()
 *   io_sock_dup(), io_sock_unplug() --> another loop: io_sock_plug()
 *
 * A socket without a descriptor has a transport that makes its events: io/loop/virtual.h.
 *
 * Hints    a transport holds bytes of its own, so it alone clears SOCK_READABLE and SOCK_WRITABLE:
 *          when the socket and what it holds are both empty, or full.
 * Thread   the loop's.  A transport that a thread works on belongs to the job of that thread.
 */
#ifndef IO_TRANSPORT_H
#define IO_TRANSPORT_H

#include "io/io.h"

/* Bytes that one send of TLS takes at most. */
#define IO_TLS_SEND (64u << 10)

struct tls_facts;

struct io_transport_calls {
	/* Bytes (> 0), 0 at the end of the stream, -EAGAIN, -errno.  Charges io->budget for what it
	 * computes. */
	int64_t (*receive)(struct io *, struct io_sock *, char *buf, size_t most);
	/* Bytes accepted (> 0), -EAGAIN, -errno.  The next send begins with the bytes that were not
	 * accepted. */
	int64_t (*send)(struct io_sock *, const struct iovec *, int n, bool more);
	bool (*has_bytes)(const struct io_sock *); /* received and not read yet */
	void (*say_end)(struct io_sock *);         /* before FIN; never waits */
	/* Another loop may have it: nothing waits to be sent. */
	bool (*may_move)(const struct io_sock *);
	void (*moved)(struct io_sock *); /* the socket has another descriptor */
	/* The deadline of an op has passed, and the peer is not to blame: it begins again.  NULL:
	 * never. */
	bool (*excuses)(struct io_op *);
	void (*free)(struct io_transport *);
};

/* The first member of each transport. */
struct io_transport {
	const struct io_transport_calls *calls;
	const struct tls_facts *facts; /* io/tls/facts.h; NULL: not known yet */
	bool http2;                    /* the handshake has agreed on it */
};

/* How a socket gets a transport; the first member of what op->handshake.with points to. */
struct io_secure {
	/* 0, and sock->transport is set; -errno */
	int (*begin)(struct io *, struct io_op *);
	/* As struct io_calls: true: op->res is set; false: moved on or parked. */
	bool (*try)(struct io *, struct io_op *);
};

#endif
