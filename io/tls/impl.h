/* io/tls/impl.h -- inside io/tls/ only.
 *
 *   context.c    what a listening socket has: its settings
 *   pem.c        ... its certificate and key
 *   staple.c     ... what its authority says of it
 *   renew.c      ... and the next ones
 *   inspect.c    ... what is worth a warning about it
 *   flight.c     when bytes are worth a step of the handshake
 *   hello.c      the name of the host in a hello
 *   challenge.c  acme-tls/1: a certificate for one handshake
 *   handshake.c  IO_HANDSHAKE: the loop moves bytes, threads compute
 *   link.c       a socket after its handshake: records to bytes, and back
 *   learn.c      what is known of a client afterwards
 *   facts.c      ... as names and values
 *   verifier.c   who verifies its certificate
 *   subject.c    whose certificate it is, as facts
 *   bio.c        how OpenSSL reads and writes
 *   tickets.c    keys of session tickets
 *   sessions.c   where a session may be resumed
 *   client.c     the other side: sockets that connect
 *
 * OpenSSL never waits and, in a thread, never touches a socket: it reads what the loop has
 * received (in), and writes to memory (out), which the loop sends.  So a job that outlives its op
 * cannot read from a descriptor that has another owner by then.
 */
#ifndef IO_TLS_IMPL_H
#define IO_TLS_IMPL_H

#include <openssl/ssl.h>
#include "base/buf.h"
#include "io/io.h"
#include "io/tls/tls.h"
#include "io/transport.h"

struct tls_draft;
struct tls_verifier;

enum tls_step {
	TLS_BEGINS,
	TLS_SHAKES,
	TLS_NEEDS_KEY, /* a step on the loop came to the certificate: a thread goes on */
	TLS_UP,
	TLS_FAILED,
};

struct tls_link {
	struct io_transport transport;
	SSL_CTX *ctx;                  /* with a reference */
	SSL *ssl;                      /* NULL until the first flight is there */
	struct tls_verifier *verifier; /* held; NULL: the client needs no certificate */
	char *host;                    /* that the hello names, for facts; NULL: none */
	char *challenge;               /* see challenge.h: its files; NULL: none is asked for */
	/* Received, and not given to OpenSSL yet. */
	struct buf in;
	size_t in_at, in_whole; /* up to here are whole records; it gets no part of one */
	/* Written by OpenSSL, and not accepted by the socket yet. */
	struct buf out;
	size_t out_at;
	/* Bytes of the application in out, or before it in the socket, that send() has not reported
	 * as accepted. */
	size_t owed;
	size_t taken;      /* bytes since the socket was full, for the size of the next batch */
	size_t small;      /* bytes of the application in small records, since an idle second */
	uint64_t heard_ns; /* when bytes came last */
	/* Of handshakes, after tls_link_guard(). */
	uint8_t messages;
	int fd;          /* -1: only `in` is read */
	int err;         /* of the socket, or of a broken peer; 0: none */
	const char *why; /* the reason of OpenSSL */
	uint8_t step;    /* enum tls_step */
	uint8_t fault;   /* enum io_handshake_fault */
	uint8_t steps;   /* so far, in threads and on the loop */
	bool here;       /* the step runs on the loop */
	bool hung;       /* the peer's end has been announced */
	bool drained;    /* the socket had fewer bytes than were asked for */
	bool end;        /* the socket's stream has ended */
	bool client;     /* this side has connected */
	bool http2;      /* the client may choose it */
};

/* 0, or -ENOMEM.  Of tls_secure_new(). */
int tls_bio_prepare(void);
BIO *tls_bio_new(struct tls_link *); /* NULL: no memory */

/* Sends what OpenSSL has written; more: further bytes follow at once.  0 if all of it was accepted,
 * -EAGAIN, or -errno. */
int tls_flush(struct tls_link *, struct io_sock *, bool more);
extern const struct io_transport_calls tls_link_calls;
/* Both take the caller's reference.  NULL: no memory, and the reference is gone. */
struct tls_link *tls_link_new(SSL_CTX *);
void tls_link_use(struct tls_link *, SSL_CTX *); /* another one, before the first step */
/* The object of OpenSSL, which reads and writes through bio.c.  False: no memory. */
bool tls_link_make(struct tls_link *);
static inline struct tls_link *
tls_link_of(const struct io_sock *s)
{
	return (container_of(s->transport, struct tls_link, transport));
}
/* What try() of a struct io_secure returns when the op has ended, or waits for its socket. */
bool tls_ended(struct io_op *, int64_t res, const char *why);
bool tls_park(struct io *, struct io_op *, bool writes);
/* The handshake has ended: messages of further ones are bounded from now on. */
void tls_link_guard(struct tls_link *);
void tls_link_free(struct tls_link *);
uint8_t tls_fault_class(void); /* enum io_handshake_fault: of the last call, too */
const char *tls_reason(void);  /* of the last call of OpenSSL in this thread; NULL: unknown */
void tls_forget_reason(void);  /* before a call */

/* learn.c: after the last step.  NULL, or why the client is refused, a constant text. */
const char *tls_learn(struct tls_link *);
/* context.c: OpenSSL is ready. */
bool tls_prepare(void);
/* side: SSL_CONF_FLAG_SERVER or _CLIENT.  False: *fault says why. */
bool tls_obey(SSL_CTX *, unsigned side, const struct tls_command *, size_t n, struct tls_fault *);

/* sessions.c.  Of tls_secure_new(), when all is set. */
bool tls_sessions_prepare(void);
bool tls_sessions_name(SSL_CTX *, const struct tls_settings *);
/* ... and where this one would verify the client. */
bool tls_sessions_verified(SSL *, const struct tls_verifier *);

/* verifier.c.  Before the first step; false: no memory. */
bool tls_verifier_apply(const struct tls_verifier *, SSL *);
/* After the last one: adds what is known.  NULL, or why the client is refused, a constant text. */
const char *tls_verifier_learn(const struct tls_verifier *, const SSL *, struct tls_draft *);
const unsigned char *tls_verifier_id(const struct tls_verifier *); /* TLS_VERIFIER_ID bytes */

/* pem.c: NULL, or what is wrong, a constant text.  of: as in struct tls_fault. */
const char *tls_pem_pairs(SSL_CTX *, struct text chain, struct text key, int *of);
/* A pem_password_cb: OpenSSL asks for the passphrase of a key, and nobody is there to type it. */
int tls_no_passphrase(char *p, int n, int rw, void *asked);
/* Why the last read of PEM returned NULL: nothing is left, or something that cannot be read. */
bool tls_pem_at_end(void);
/* The current certificate is the one that ends first. */
void tls_pem_choose(SSL_CTX *);
const char *tls_pem_ca(SSL_CTX *, struct text pem);
const char *tls_pem_dh(SSL_CTX *, struct text pem);

/* staple.c: NULL, or why it is not sent, a constant text.  The current certificate changes. */
const char *tls_staple_use(SSL_CTX *, struct text der);
/* renew.c: since 1970; 0: it cannot be read. */
uint64_t tls_seconds(const ASN1_TIME *);

/* handshake.c: the two functions of struct io_secure */
int tls_begin(struct io *, struct io_op *);
bool tls_try(struct io *, struct io_op *);

struct tls_secure {
	struct io_secure secure;
	SSL_CTX *ctx; /* after tls_secure_new() under the lock of renew.c */
	const char *unstapled;
};

SSL_CTX *tls_secure_ctx(const struct io_secure *); /* with a reference for the caller */

#endif
