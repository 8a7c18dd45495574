/* accel-load/streams_impl.h -- shared by streams.c (places, their requests), session.c (frames) and
 * asks.c (fields of requests). */
#ifndef ACCEL_LOAD_STREAMS_IMPL_H
#define ACCEL_LOAD_STREAMS_IMPL_H

#include <nghttp2/nghttp2.h>
#include "accel-load/conn_impl.h"
#include "accel-load/streams.h"

#define STREAM_RANGE_MAX 56 /* "bytes=", two numbers of 20 digits */

struct stream {
	struct conn *conn;
	struct request asked;
	struct list due;   /* of the thread: the oldest first; not linked: free */
	struct list link;  /* free or waiting */
	uint64_t heard_ns; /* its last bytes, or its begin */
	int32_t id;        /* 0: it is not on this connection */
	bool reset;        /* RST_STREAM came */
	struct reading reading;
	struct reading_head head;
	int64_t length;  /* of the body; -1: unknown */
	uint64_t coming; /* bytes of the frame that is read, with its padding */
	char range[STREAM_RANGE_MAX];
};

struct streams {
	nghttp2_session *session;     /* NULL: not connected */
	struct list free[2], waiting; /* places; [1]: for --beside */
	struct stream *heads;         /* whose fields are read; NULL: of nobody */
	unsigned open;                /* asked, not ended */
	bool last;                    /* no more requests on this connection */
	bool goaway_failed;           /* GOAWAY with an error came */
	bool tired;                   /* a request failed: no more of them for a moment */
	uint64_t answered;            /* on this connection */
	unsigned n;
	struct stream place[];
};

struct asks {
	nghttp2_session_callbacks *callbacks;
	/* All but path, priority and range are the same for each request. */
	nghttp2_nv *fields;
	size_t n;
	const char *priority[2]; /* NULL: none; [1]: of --beside */
	char **names;            /* lower case; NULL-terminated */
};

/* streams.c: what became of a request. */
void stream_has_head(struct stream *);
void stream_brings(struct stream *, const char *p, size_t n);
void stream_answered(struct stream *);
void stream_fails(struct stream *, enum load_error);
/* The server will not answer streams after this one.  error: it says that something is wrong. */
void streams_goaway(struct conn *, int32_t last_id, bool error);

/* session.c */
bool session_up(struct conn *); /* false: no memory */
/* False: no memory, or the connection has no more numbers. */
bool session_ask(struct stream *);
void session_reset(struct stream *); /* sends RST_STREAM */
void session_set_callbacks(nghttp2_session_callbacks *);

/* asks.c: the fields of a request; they point to the place and the URL. */
size_t asks_fields(struct asks *, struct stream *, const struct url *);

static inline struct url *
stream_url(const struct stream *s)
{
	const struct run *run = s->conn->thread->run;

	return (&(s->reading.beside ? run->beside : run->urls)->url[s->asked.url]);
}

#endif
