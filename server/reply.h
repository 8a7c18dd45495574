/* server/reply.h -- the waist: whatever is answered, it leaves through here.
 *
 * Each of these puts head and body into r->body and sets r->status; the caller then tells the
 * connection (conn_replied).  They never wait.
 */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "server/request.h"

/* What an application said about the file it wants sent. */
struct reply_extra {
	int status;               /* not 200: sent as it is, no ranges, no conditions */
	struct text lines;        /* further header lines, each with CRLF, no framing or control headers among them */
	struct text content_type; /* .n 0: from the name */
	struct text etag;         /* the application's own; .n 0: the file's */
	struct text last_modified;
};

/* The one way to send a file: conditions, ranges, head.  Takes the reference to e. */
void reply_file(struct request *, struct stat_entry *e, const struct reply_extra *);
void reply_error(struct request *, int status);
void reply_retry(struct request *, unsigned after_s);            /* 503 with Retry-After */
void reply_redirect(struct request *, int status, struct text path, struct text query); /* path decoded; encoded again here */
void reply_options(struct request *, const char *allow, int status); /* 200 to OPTIONS, 405 to other methods */
/* Head of a streamed reply: lines as in reply_extra; length -1 with chunked says how the end is marked. */
void reply_stream_head(struct request *, int status, struct text lines, int64_t length, bool chunked);
void page_make(struct page *, int status, struct text html); /* from an HTML body, copied */
void page_free(struct page *);
size_t reply_prepare(const struct stat_entry *, char *head);

#endif
