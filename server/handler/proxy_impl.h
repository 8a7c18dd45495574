/* server/handler/proxy_impl.h -- shared by the proxy*.c files; no other file includes it.
 *
 *   authorize.c      asks whether a request may go on, before any of the others
 *   proxy.c          start and stop; the request body goes to the application
 *   proxy_request.c  the request for the application
 *   proxy_stream.c   a request body that goes on while it arrives, 1xx replies
 *   proxy_reply.c    the reply: streamed, kept for a slow client
 *   proxy_head.c       its header lines
 *   proxy_code.c       its body, compressed
 *   proxy_control.c    its control headers: allowed or dropped
 *   proxy_file.c         a file that it names
 *   proxy_temp.c         a file that is removed
 *   proxy_pieces.c       pieces of files
 *   proxy_fetch.c        the reply of another backend
 *   proxy_rewrite.c      the request goes to another part of the configuration
 *   proxy_tunnel.c   a connection that switches to another protocol
 */
#ifndef SERVER_HANDLER_PROXY_IMPL_H
#define SERVER_HANDLER_PROXY_IMPL_H

#include "server/handler/handler.h"
#include "server/reply/reply.h"
#include "server/request/request.h"
#include "server/request/spool.h"
#include "server/worker/base.h"
#include "wire/codec/control.h"
#include "wire/codec/message.h"

struct proxy_reply;

struct relay {
	struct request *r;
	struct exchange *ex; /* NULL: it has ended */
	struct proxy_request req;
	struct reply_extra extra;
	uint64_t expires; /* seconds, or a time; valid if expires_set */
	bool expires_set, expires_is_date;
	bool unkept;             /* X-Accel-Buffering: no */
	struct text type;        /* type of the file, if the application gives none; .n 0: none */
	struct proxy_temp *temp; /* a file on its way; NULL: none */
	struct proxy_pieces *pieces;
	struct proxy_code *code; /* compresses the body; NULL: it does not, or has ended */
	struct text coding;      /* of the reply; .n 0: none */
	struct text trailers;    /* lines after the last chunk; .n 0: none */
	bool varies;             /* the reply depends on Accept-Encoding */
	bool fetched;            /* the reply is that of X-Reproxy-URL */
	bool program;            /* of cgi.assign: its settings are cgi.* */
	bool ends_with_client;   /* a client that sends no more is gone */
	bool has_head;
	bool chunked, sending, over;
	bool broken;   /* the reply broke off: cut the connection */
	bool unusable; /* a rewrite of the request failed */
	bool replied;  /* a file or an error page answers */
	bool tunnel;   /* after 101 */
	bool half;     /* tunnel: the application sends no more */
};

/* The relay of a request, in its arena.  An error handler only says that it is not proxied any
 * more. */
extern struct relay *slot_proxy_relay;

static inline struct relay *
relay_of(const struct request *r)
{
	return (r->proxied ? *request_slot(r, proxy_relay) : NULL);
}

static inline void
relay_set(struct request *r, struct relay *rl)
{
	*request_slot(r, proxy_relay) = rl;
	r->proxied = rl != NULL;
}

/* Decides whether the reply is compressed. */
void proxy_code_begin(struct relay *, const struct proxy_reply *);
bool proxy_code_take(struct relay *, struct text); /* false: no memory */
void proxy_code_flush(struct relay *, bool end);   /* what was taken goes to the client */
bool proxy_code_is_full(const struct relay *);     /* the application pauses */
bool proxy_code_holds(const struct relay *);       /* the head waits for the first bytes */
void proxy_code_stop(struct relay *);
/* Coded bytes, for the client.  False: no memory. */
bool proxy_code_to_client(struct relay *, struct text, bool over);
/* Fields of the application. */
bool proxy_code_drops(const struct relay *, struct text name);
bool proxy_code_weakens(const struct relay *, struct text name, struct text value);
void proxy_code_lines(const struct relay *, struct buf *out);

struct exchange_conf proxy_times(const struct conf *);
void proxy_stop(struct request *);
/* Starts a handler of requests for an application; fill: proxy_fill() or a function that calls
 * it. */
enum handled proxy_begin(struct request *, struct upstream *, const struct exchange_conf *,
    bool (*fill)(struct relay *, const struct upstream *));
/* Fills rl->req from the request; false: no memory. */
bool proxy_fill(struct relay *, const struct upstream *to);
extern const struct exchange_sink proxy_sink; /* arg: the relay */
/* The application can take more of the request body. */
void proxy_room(void *relay);
/* A second try answers. */
void proxy_moved(void *relay, struct exchange *);
extern const struct body_taker proxy_takes;
extern const struct body_taker cgi_takes; /* the length is known before the program starts */
void proxy_interim(void *relay, const struct proxy_reply *);
void proxy_trailers(void *relay, const struct proxy_reply *);
void proxy_send_more(struct relay *); /* sends what waits, or ends the reply */

/* A field of the client's request lists this member. */
bool proxy_client_says(const struct request *, struct text field, struct text member);
/* The protocol that the client may switch to; .p NULL: none. */
struct text proxy_upgrade(const struct request *);
void proxy_tunnel_begin(struct relay *, const struct proxy_reply *);
void proxy_tunnel_body(struct relay *, struct text);
void proxy_tunnel_eof(void *relay);

/* Another reply replaces the application's bytes; rl->ex is NULL.  Nothing of the request may be
 * touched after it: it may be gone, and so may the relay. */
void proxy_answer(struct relay *, enum handled);
void proxy_answer_error(struct relay *, int status);

/* X-Rewrite-*: true if it took the reply; the request is answered or routed again. */
bool proxy_rewrite(struct relay *, const struct proxy_reply *);
/* X-Accel-Redirect: the request is answered, or routed again as a GET of this URI. */
void proxy_redirect(struct relay *, const struct proxy_reply *, enum control);
/* A reply of a program that is only a Location with a path (RFC 3875, 6.2.2): true if the request
 * is answered or routed again as a GET of it. */
bool proxy_local_redirect(struct relay *, const struct proxy_reply *);
/* Place of the backend that X-Rewrite-Backend named, 0 if any may answer; false: refused. */
bool proxy_pin(struct request *, unsigned *place);
/* The URI that the conditions saw: the client's, or that of a changed path.  .p NULL: no memory. */
struct text proxy_target(struct request *);
/* One line for each field that setenv sets (proxy_ours.c).  False: no memory. */
bool proxy_join_ours(struct relay *);
/* Logs and counts a control header that has no effect. */
void proxy_dropped(const struct relay *, struct text name, const char *why);
/* Allows or drops each control header and does what hints ask for.  Returns the header that asks
 * for another answer, or CONTROLS. */
enum control proxy_control(struct relay *, const struct proxy_reply *);

/* The application's fields as header lines (.p NULL: no memory).  file: takes the fields that a
 * file reply makes itself; NULL: none. */
struct text proxy_lines(struct relay *, const struct proxy_reply *, struct reply_extra *file);
/* The same for fields that follow the body; .n 0: none, or no memory. */
struct text proxy_trailer_lines(struct relay *, const struct proxy_reply *);

/* Where a name lies. */
struct proxy_named {
	const struct root *root;  /* NULL: the document root */
	struct file_scope *scope; /* NULL: a temporary file */
	struct text rest;         /* the path below it, with a NUL after it; in the arena */
};
/* Decides whether the name may be sent: 0, or the status for the client.  A refusal is logged. */
int proxy_name(const struct relay *, enum control, struct text name, struct proxy_named *);
void proxy_name_refused(const struct relay *, enum control, struct text name, const char *why);
/* Each forgets the exchange and answers, now or later. */
void proxy_send_file(struct relay *, const struct proxy_reply *, enum control);
void proxy_send_temp(struct relay *, const struct proxy_reply *, enum control);
void proxy_send_pieces(struct relay *, const struct proxy_reply *, enum control);
/* Another backend's reply follows; the request has no body any more. */
void proxy_fetch(struct relay *, const struct proxy_reply *, enum control);
/* The client is gone. */
void proxy_temp_stop(struct relay *);
void proxy_pieces_stop(struct relay *);
/* The answer that a control header asks for. */
void proxy_control_send(struct relay *, const struct proxy_reply *, enum control);

#endif
