/* io/http2/http2.h -- a client's connection that carries many requests (RFC 9113).
 *
 *   bytes of the client --http2_receive()--> streams --calls->stream()--> a socket for each request
 *   sends on these sockets --> turns, windows --> one send of the connection after the other
 *
 * A stream is the transport of a socket without a descriptor (io/loop/virtual.h).  It gives its
 * request as a head of HTTP/1, and takes a reply of HTTP/1, so nothing above io/ knows frames.
 *
 *   reply head, body --IO_SEND--> HEADERS, DATA        IO_CLOSE --> end of the stream; cuts: RST
 *   http2_trailers() --> HEADERS after the last DATA
 *   body of the request, in chunks unless it has a length <--IO_RECV-- DATA
 *
 * Owner    the caller, who closes all streams and sees http2_is_busy() false before http2_free().
 * Errors   the client's go to it as GOAWAY or RST_STREAM; http2_receive() says when it is over.
 * Thread   the loop's.
 * Source   RFC 9113, RFC 7541 (by nghttp2), RFC 9218, RFC 8441.
 */
#ifndef IO_HTTP2_HTTP2_H
#define IO_HTTP2_HTTP2_H

#include "base/text.h"
#include "io/io.h"

/* The last requests of a client that knows of the end are on their way for this time. */
#define HTTP2_DRAIN_MS 1000u

struct http2;

struct http2_conf {
	unsigned max_streams; /* at once */
	size_t max_head;      /* bytes of a request head */
	uint32_t send_ms;     /* for the next bytes of a socket that is full */
	bool is_flooder;      /* the client has less of what limits.c allows at once */
	uint32_t send_rate;   /* bytes a second that the client takes in the long run; 0: any */
};

struct http2_calls {
	/* A request: its head, or the beginning of one that is too long; lent until the return.
	 * The socket of *stream is to be made: io_sock_init(, -1), io_sock_plug().  False: no
	 * memory; the stream is refused. */
	bool (*stream)(struct http2 *, struct io_transport *stream, struct text head);
	/* The socket failed: -errno; or 0: all is sent after http2_end().  Not inside a call. */
	void (*ended)(struct http2 *, int err);
	/* The socket has all that was sent so far.  Not inside a call. */
	void (*quiet)(struct http2 *);
};

/* NULL: no memory.  The configuration is copied; calls stay. */
struct http2 *http2_new(struct io *, struct io_sock *, const struct http2_conf *,
    const struct http2_calls *, void *owner);
void http2_free(struct http2 *); /* NULL is allowed */
void *http2_owner(const struct http2 *);

/* 0; -EPROTO: the connection is over, and http2_end() sends why; -ENOMEM. */
int http2_receive(struct http2 *, struct text bytes);
bool http2_is_busy(const struct http2 *);     /* an op is in flight */
unsigned http2_streams(const struct http2 *); /* that the client sees as open */
/* Bytes that the socket took; and whether replies wait for the client: its socket is full, or its
 * windows are. */
uint64_t http2_sent(const struct http2 *);
bool http2_waits(const struct http2 *);
/* Nanoseconds since the unfinished head began; 0: there is none. */
uint64_t http2_head_since(const struct http2 *);
size_t http2_head_bytes(const struct http2 *);
bool http2_is_flood(const struct http2 *); /* it is over because of a limit */
/* NULL, or why the connection is over, a constant text. */
const char *http2_why(const struct http2 *);

/* Fields that follow the reply of a stream's socket: lines of HTTP/1, copied, once before its
 * IO_CLOSE.  A reply of known length has none.  False: no memory. */
bool http2_trailers(struct io_sock *, struct text lines);

/* No further streams: tells the client which were taken, when it has answered, or at the next call
 * a second later.  Running ones go on. */
void http2_drain(struct http2 *);
bool http2_is_draining(const struct http2 *); /* the client has not answered yet */
bool http2_is_drained(const struct http2 *);  /* none runs, and none follows */
/* After http2_drain(): does not wait for the client, whose requests on their way are not taken. */
void http2_last_stream(struct http2 *);
/* As http2_drain(), and ended() follows when all is sent. */
void http2_end(struct http2 *);
bool http2_is_ending(const struct http2 *); /* http2_end() was called: no stream begins any more */
bool http2_has_ended(const struct http2 *); /* ended() was called, or http2_stop() */
/* GOAWAY, if the socket takes it at once and no stream runs; http2_stop() follows. */
void http2_say_end(struct http2 *);
/* Sends no more, and breaks all streams; ended() follows if an op is in flight. */
void http2_stop(struct http2 *);

#endif
