/* io/http2/impl.h -- inside io/http2/ only.
 *
 *   session.c    a connection: its life, what it receives, the end
 *   send.c       ... its sends, one after the other
 *   batch.c      the frames of a send: their bytes, or where they lie
 *   callbacks.c  what nghttp2 says of the bytes that came
 *   stream.c     a stream: the transport of a request's socket
 *   body.c       ... the body of its request
 *   reply.c      ... its reply, as HEADERS and DATA
 *   windows.c    ... the rate at which its client opens windows
 *   limits.c     what a client may do how often
 *
 * Only io/http2/ includes headers of nghttp2.
 */
#ifndef IO_HTTP2_IMPL_H
#define IO_HTTP2_IMPL_H

#include <nghttp2/nghttp2.h>
#include "base/buf.h"
#include "io/engine.h"
#include "io/http2/batch.h"
#include "io/http2/http2.h"
#include "io/transport.h"
#include "wire/http2/frames.h"
#include "wire/http2/reply.h"
#include "wire/http2/request.h"

/* An update of a window by less costs more.  A client may have windows of 511 bytes. */
#define HTTP2_WINDOW_SMALL 256u
/* Priorities that come before their streams (RFC 9218 7.1), the last ones. */
#define HTTP2_EARLY 8u

/* What a client has not taken of the rate that it has to: only time in which its window is shut
 * counts. */
struct window_debt {
	uint64_t shut_ns; /* since then; 0: the window is open */
	uint64_t debt_ns;
};

/* Rows of limits.c. */
enum http2_flood {
	FLOOD_RESETS,   /* streams that the client opens and resets */
	FLOOD_STREAMS,  /* more streams than SETTINGS allow, again and again */
	FLOOD_CONTROL,  /* PING, SETTINGS */
	FLOOD_EMPTY,    /* frames that change nothing */
	FLOOD_WINDOWS,  /* small updates of windows */
	FLOOD_PRIORITY, /* PRIORITY, PRIORITY_UPDATE */
	FLOOD_HEADS,    /* heads far too long */
	FLOODS
};

struct bucket { /* what is left, and when it was looked at last */
	uint32_t left;
	uint64_t at_ns;
};

struct http2 {
	struct io *io;
	struct io_sock *sock;
	struct http2_conf conf;
	const struct http2_calls *calls;
	void *owner;
	nghttp2_session *ng;
	struct list streams;
	unsigned nstreams;
	/* Heads come one at a time. */
	struct http2_request head;
	uint64_t head_ns; /* its beginning; 0: none comes */
	struct io_op send, soon;
	struct http2_batch batch; /* on its way */
	uint64_t bytes_sent;
	struct window_debt window;  /* of the connection */
	uint64_t drain_ns;          /* when the client learned of the end */
	uint64_t asked_ns, debt_ns; /* of the send on its way */
	uint64_t moved_ns;          /* DATA went out last */
	struct http2_frames frames;
	int32_t early[HTTP2_EARLY];
	unsigned nearly;
	struct bucket bucket[FLOODS];
	const char *why;
	uint8_t draining; /* 1: told, 2: the last stream is fixed */
	bool sending, soon_due;
	bool skipped;    /* the batch knows the result of the send already */
	bool in_receive; /* the client's bytes are being read: what they cause is sent after it */
	bool stuck;      /* the socket is full */
	bool holding;    /* ... for a moment yet: its streams keep their pages */
	bool leaving;    /* the client has sent GOAWAY */
	bool late;       /* the client opens the window of the connection too slowly */
	bool is_flood;   /* over because of a limit */
	bool ending, stopped, over;
	bool lost; /* the library cannot go on */
};

enum stream_out { OUT_HEAD, OUT_BODY, OUT_DONE };

struct http2_stream {
	struct io_transport transport;
	struct http2 *h2;
	struct io_sock *sock; /* NULL: its owner has closed it, or has not made it yet */
	struct list link;
	int32_t id;
	uint8_t out; /* enum stream_out */
	bool owned;  /* the owner has the transport */
	bool reset;  /* by the client */
	bool closed; /* nghttp2 has forgotten it */
	bool broken; /* reset, or the connection is gone */
	bool chunked, tunnel, no_body;
	bool ended;      /* the client's end has come */
	bool last_chunk; /* ... and was read */
	bool finished;   /* our end is sent */
	bool eof;        /* ours follows the bytes that are there */
	bool deferred;   /* nghttp2 waits for http2_stream_resume() */
	bool prioritised;
	struct buf in; /* of the body, not read yet */
	size_t in_at;
	struct buf reply;    /* a head that has come in part */
	struct buf trailers; /* lines of HTTP/1 */
	int64_t left;        /* of the body; -1: unknown */
	size_t dropped;      /* of the body, since nobody wants it */
	struct window_debt window;
	size_t taken; /* bytes of the parked send that went out */
};

static inline struct http2_stream *
stream_of(const struct io_sock *s)
{
	return (container_of(s->transport, struct http2_stream, transport));
}

/* session.c */
/* The connection is over: GOAWAY with this code. */
void http2_fail(struct http2 *, uint32_t code, const char *why);
/* rc: what a call of the library returned.  Without memory the connection ends soon. */
void http2_check(struct http2 *, int rc);
bool http2_is_terminated(const struct http2 *);
/* Nothing is sent any more, because all is sent (0), or -errno: calls->ended(), which may free the
 * connection. */
void http2_ended(struct http2 *, int err);

/* send.c */
void http2_send_init(struct http2 *);
void http2_want_turn(struct http2 *); /* frames are sent soon, once for all that happens now */
/* Sends now what is there, unless a send is on its way.  0, or -errno: the connection cannot go on.
 * After http2_end() it may free the connection. */
int http2_flush(struct http2 *);

/* callbacks.c */
nghttp2_session_callbacks *http2_callbacks(void); /* NULL: no memory */

/* stream.c */
struct http2_stream *http2_stream_new(struct http2 *, int32_t id);
void http2_stream_free(struct http2_stream *);
void http2_stream_wake(struct http2_stream *, uint8_t hints); /* its socket */
void http2_stream_broken(struct http2_stream *);              /* reset, or the connection is gone */
void http2_stream_closed(struct http2_stream *, uint32_t code);
void http2_stream_reset(struct http2_stream *, uint32_t code);
void http2_streams_unblock(struct http2 *); /* the socket has room, or windows have opened */
void http2_streams_stuck(struct http2 *);   /* ... they are full: pages are given back */
void http2_stream_give_back(struct http2_stream *);
bool http2_streams_wait(const struct http2 *); /* for windows of the client */
bool http2_stream_is_blocked(const struct http2_stream *);
void http2_stream_resume(struct http2_stream *);

/* body.c */
/* Some of it has come; false: no memory. */
bool http2_body_take(struct http2_stream *, struct text);
void http2_body_ended(struct http2_stream *); /* its end has come */
void http2_body_free(struct http2_stream *);  /* nobody reads the rest */
/* As receive() and has_bytes() of struct io_transport_calls. */
int64_t http2_body_receive(struct io *, struct io_sock *, char *, size_t);
bool http2_body_has_bytes(const struct io_sock *);

/* reply.c */
/* As send() of struct io_transport_calls. */
int64_t http2_reply_send(struct http2_stream *, const struct iovec *, int n);
int64_t http2_reply_broken(struct http2_stream *);
ssize_t http2_reply_read_data(nghttp2_session *, int32_t id, uint8_t *, size_t, uint32_t *flags,
    nghttp2_data_source *, void *);
int http2_reply_send_data(nghttp2_session *, nghttp2_frame *, const uint8_t *head, size_t n,
    nghttp2_data_source *, void *);

/* windows.c */
/* n bytes of DATA go out.  The stream ends if its window, and the connection is late if its own
 * opens more slowly than conf.send_rate. */
void http2_windows_judge(struct http2_stream *, size_t n);

/* limits.c */
void http2_limits_init(struct http2 *);
/* Takes n of the bucket.  False: it was empty, and the connection is over. */
bool http2_limit(struct http2 *, enum http2_flood, unsigned n);
void http2_limit_over(struct http2 *, enum http2_flood); /* ... it is */
void http2_limit_earn(struct http2 *, enum http2_flood, unsigned n);

#endif
