/* server/reply/style.h -- what the head of a reply depends on, besides the file. */
#ifndef SERVER_REPLY_STYLE_H
#define SERVER_REPLY_STYLE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/text.h"

struct mime;

/* Replies that depend on Accept-Encoding, and say so: Vary. */
struct reply_varies {
	const struct text *types; /* n beginnings of media types */
	size_t n;
	uint64_t min, max; /* bytes */
	bool all;          /* any file may have a compressed sibling */
};

struct reply_style {
	struct reply_varies varies;
	const struct mime *mime; /* owned by the resources */
	unsigned etag_parts;
	bool ranges;          /* send Accept-Ranges */
	bool watched;         /* as in struct file_scope */
	struct text tag_line; /* "Server: x\r\n" or empty; belongs to the owner */
};

#endif
