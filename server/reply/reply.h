/* server/reply/reply.h -- the waist: every reply is made by one of these functions.
 *
 * Each function puts head and body into r->body and sets r->status.  The caller then calls
 * conn_replied().  None of them waits.
 */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "wire/http1/accept_encoding.h"
#include "base/text.h"

struct reply_style;
struct reply_varies; /* server/reply/style.h */
struct file_entry;
struct io_file;
struct request;
struct worker_base;

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

/* Another form of a file: compressed.  Its owner is not counted here. */
struct reply_form {
	enum coding coding;
	/* the entity tag is made of this file's tag and the coding */
	const struct file_entry *tags;
	struct text head;     /* prepared, as in struct file_entry; .n 0: none */
	struct io_file *file; /* or bytes */
	const char *bytes;
	uint64_t size;
	void *(*keep)(struct reply_form *); /* counts a user, for ... */
	void (*put)(void *);                /* ... what keep() returned */
};

/* Files of this name are not sent: programs, and what static-file.exclude-extensions lists. */
bool reply_excludes(const struct request *, struct text path);
/* A link led to such a file; it is logged. */
bool reply_excludes_link(struct request *, const struct file_entry *);
/* The only way to send a file: conditions, ranges, head.  Takes the reference to e. */
void reply_file(struct request *, struct file_entry *e, const struct reply_extra *);
/* As reply_file(), with the bytes of a form; the entry stays the caller's. */
void reply_file_as(struct request *, struct file_entry *, struct reply_form *,
    const struct reply_extra *);
/* True if the conditions of the request decide without the bytes of the form: the reply is made
 * (304, 412). */
bool reply_file_decided(struct request *, struct file_entry *, struct reply_form *,
    const struct reply_extra *);
/* True if the application's status is sent unchanged.  The server itself decides between 200, 206
 * and 416. */
bool reply_own_status(int status);
/* The media type of the file, as the application or the file's name says. */
struct text reply_type(const struct reply_style *, const struct file_entry *,
    const struct reply_extra *);
/* True if a reply of this type and length (-1: unknown) depends on Accept-Encoding. */
bool reply_varies_fits(const struct reply_varies *, struct text type, int64_t length);
/* Writes the start of every 200 of the form to head[FILE_HEAD_MAX]; returns its length. */
size_t reply_prepare_form(const struct file_entry *, const struct reply_form *, char *head);
/* Adds len bytes of the file from off to the body.  HEAD: adds nothing.  False: no memory. */
bool reply_attach(struct request *, struct file_entry *, uint64_t off, uint64_t len);
/* 503: with Retry-After: 1; reply_retry() has another delay */
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
/* What follows the first `mark` bytes of r->body is the head of the reply: keeps it for a log. */
void reply_keep_head(struct request *, uint64_t mark);
size_t reply_prepare(const struct file_entry *, char *head);

/* The time as in a Date field; valid until the next call. */
const char *reply_date(struct worker_base *);

#endif
