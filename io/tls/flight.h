/* io/tls/flight.h -- when the bytes of a client are worth a step of the handshake.  Pure.
 *
 *   record   type 1, version 2, length 2, then length bytes
 *
 * A step runs in a thread, which never waits for bytes.  So it begins when the loop has a whole
 * flight: a client that stops in the middle, or sends a byte at a time, costs its bytes and no
 * thread.
 */
#ifndef IO_TLS_FLIGHT_H
#define IO_TLS_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>

/* Longer hellos are refused.  Those of browsers have up to 2 KB. */
#define TLS_HELLO_MAX (16u << 10)
#define TLS_HEAD      5u                /* bytes of the head of a record */
#define TLS_PLAIN     (16u << 10)       /* most bytes of a record */
#define TLS_RECORD    (TLS_PLAIN + 256) /* ... that is encrypted */
/* Bytes of a client that are kept until the next step. */
#define TLS_FLIGHT_MAX (20u << 10)

enum tls_flight {
	TLS_FLIGHT_MORE,
	TLS_FLIGHT_PART, /* whole records, and a part: of the flight, or of what follows it */
	TLS_FLIGHT_READY,
	TLS_FLIGHT_HTTP,    /* plain HTTP */
	TLS_FLIGHT_NOT_TLS, /* neither */
	TLS_FLIGHT_LONG,    /* a hello longer than TLS_HELLO_MAX */
	TLS_FLIGHT_BROKEN,  /* no such record, or one that is too long: a head is all of *whole */
};

/* first: OpenSSL has had no byte of this client yet.  *whole: bytes of whole records, which it may
 * have.  A part of a record does not count: the next head lies after its end. */
enum tls_flight tls_flight(const void *p, size_t n, bool first, size_t *whole);

#endif
