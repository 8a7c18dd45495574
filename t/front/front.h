/* t/front -- a gateway for the tests: HTTP/1.1 comes in, HTTP/2 goes out.
 *
 *   a client ---- HTTP/1.1 ----> struct conn ---- HTTP/2, in clear ----> accel-server
 *
 * One connection of a client is one connection to the server, from the address of the client.
 * Each of its requests is a stream.  Pipelined requests are streams at the same time; their
 * replies leave in order.  After GOAWAY a new connection to the server takes what follows.
 */
#pragma once

#include <glib.h>
#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stdint.h>

#define HEAD_MAX (256 << 10) /* of a request */

struct conn;

/* A request and its reply.  Freed when its reply has left and its stream is closed. */
struct exchange {
	struct conn *conn;
	int32_t id;    /* of the stream; 0: the front answers itself */
	char *text;    /* the head of the request */
	bool head;     /* the method is HEAD */
	char *accept;  /* a WebSocket: Sec-WebSocket-Accept */
	bool tunnel;   /* bytes follow, without a frame of HTTP/1 */
	bool http10;   /* the client understands no chunks */
	bool close;    /* the connection ends after the reply */
	bool expects;  /* the client waits with the body for 100 */
	bool deferred; /* nghttp2 waits for more of the body */
	bool has_body;
	bool sent;     /* the head has left */
	bool spent;    /* a part of the body that has left is not held any more */
	bool refused;  /* the server has not taken it: it is sent again after GOAWAY */
	bool again;    /* it is sent for the second time */
	bool body_end; /* the client has sent all of it */
	bool replied;  /* the reply has its head */
	bool chunked;  /* the body of the reply is in chunks */
	bool bare;     /* the reply has no body */
	bool ended;    /* the reply is whole */
	bool broken;   /* the stream ended before the reply was whole */
	bool closed;   /* nghttp2 knows the stream no more */
	bool left;     /* the reply is out of the queue */
	int status;
	uint64_t length; /* Content-Length of the reply, or UINT64_MAX */
	size_t owed;     /* bytes of DATA in out, which the window does not have back yet */
	GByteArray *body;
	size_t given;      /* bytes of body that nghttp2 has */
	GString *trailers; /* of the request: lines of HTTP/1 */
	GString *fields;   /* of the reply or of its end, as lines of HTTP/1 */
	GString *out;      /* the reply, as HTTP/1 */
};

enum part {
	PART_HEAD,
	PART_BODY,
	PART_SIZE,
	PART_CHUNK,
	PART_CHUNK_END,
	PART_TRAILERS,
	PART_TUNNEL,
	PART_NONE
};

/* A socket as epoll knows it. */
struct side {
	struct conn *conn; /* NULL: the listening socket, or standard input */
	int fd;
	uint32_t events;
};

struct conn {
	struct side client, server;
	struct sockaddr_in from; /* the client */
	GString *in;             /* bytes of the client that are not taken yet */
	GString *up;             /* bytes to the server */
	GQueue queue;            /* exchanges in the order of their requests */
	GPtrArray *all;          /* those that are not freed */
	struct exchange *upload; /* its body comes; may have left */
	enum part part;          /* what comes next in in */
	uint64_t left;           /* bytes of the body or chunk that are to come */
	nghttp2_session *h2;
	bool client_eof;
	bool server_eof;
	bool settled; /* SETTINGS have come: they say whether a WebSocket is a stream */
	bool goaway;
	bool moves;  /* the server has said in advance that it ends the connection */
	bool failed; /* GOAWAY with an error */
	int64_t renewed_us;
	bool renewed;   /* what was not taken waits for SETTINGS of the new connection */
	bool mute;      /* it takes no more bytes; what it has said before is read */
	bool finishing; /* all is written; waits for the end of the client */
	bool dead;
};

/* request.c: takes from in what is whole.  True if it took something. */
bool request_take(struct conn *c);
/* Sends what the connection before has not taken. */
void request_again(struct conn *c);
/* The client ends: a request that is not whole is cancelled. */
void request_eof(struct conn *c);

/* reply.c */
void reply_callbacks(nghttp2_session_callbacks *cb);
struct exchange *exchange_new(struct conn *c);
void exchange_free(struct exchange *x);
/* The session ends: nghttp2 knows no stream any more. */
void exchanges_close(struct conn *c);
/* Its reply is out of the queue. */
void exchange_leave(struct exchange *x);
/* The front's own reply: the request is no HTTP/1. */
void reply_refuse(struct exchange *x, int status);
