/* server/reply.h -- the waist: every reply is made by one of these functions.
 *
 * Each function puts head and body into r->body and sets r->status.  The caller then calls
 * conn_replied().  None of them waits.
 */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "server/request.h"

/* What an application says about the file to send. */
struct reply_extra {
	int status; /* not 200: sent unchanged, without ranges and conditions */
	/* More header lines, each with CRLF, without framing and control headers. */
	struct text lines;
	struct text content_type; /* .n 0: the type of the file name */
	struct text etag;         /* the application's; .n 0: the file's */
	struct text last_modified;
	struct text charset; /* of a text type; .n 0: the type is sent as it is */
};

/* The only way to send a file: conditions, ranges, head.  Takes the reference to e. */
void reply_file(struct request *, struct file_entry *e, const struct reply_extra *);
/* Adds len bytes of the file from off to the body.  HEAD: adds nothing.  False: no memory. */
bool reply_attach(struct request *, struct file_entry *, uint64_t off, uint64_t len);
void reply_error(struct request *, int status);
/* lines: further header lines, each with CRLF */
void reply_error_with(struct request *, int status, struct text lines);
void reply_retry(struct request *, unsigned after_s); /* 503 with Retry-After */
/* path is decoded; it is encoded here */
void reply_redirect(struct request *, int status, struct text path, struct text query);
/* url: printable ASCII without blanks */
void reply_location(struct request *, int status, struct text url);
/* Methods of a file or a page: 200 to OPTIONS, 405 to others. */
void reply_methods(struct request *);
/* Head of a streamed reply; lines as in reply_extra.  length -1: unknown; chunked tells how the end
 * is marked. */
void reply_stream_head(struct request *, int status, struct text lines, int64_t length,
    bool chunked);
/* A 1xx head, with nothing but the lines.  False: no memory. */
bool reply_interim(struct request *, int status, struct text lines);
/* 101 Switching Protocols.  False: no memory. */
bool reply_switch(struct request *, struct text protocol, struct text lines);
/* What is behind the first mark bytes of r->body is the head of the reply: keeps it for a log. */
void reply_keep_head(struct request *, uint64_t mark);
/* Makes a page of an HTML body, which is copied. */
void page_make(struct page *, int status, struct text html);
void page_free(struct page *);
size_t reply_prepare(const struct file_entry *, char *head);

#endif
