/* wire/log_format.h -- the language of accesslog.format, and the way values are written into a line
 * of a log.
 *
 *   %h - %u [%{begin:%F}t] "%r" %>s %{Referer}i
 *   |  |  |        |             |        |
 *   piece, literal, piece ...    |        `- argument: a name
 *                                `- < and > count for nothing
 *
 * Pure.  A format is parsed once; its texts are slices of the format.
 * Bounds   LOG_PIECES_MAX pieces.
 * Errors   false with one sentence in *err.
 */
#ifndef WIRE_LOG_FORMAT_H
#define WIRE_LOG_FORMAT_H

#include "base/buf.h"
#include "base/text.h"
#include "base/timing.h"

#define LOG_PIECES_MAX  128u
#define LOG_FORMAT_JSON "json" /* a format of its own: one object on each line */

enum log_piece_kind {
	LOG_LITERAL,
	LOG_REMOTE,   /* %h %a */
	LOG_NOTHING,  /* %l: "-" */
	LOG_EMPTY,    /* %P */
	LOG_USER,     /* %u */
	LOG_TIME,     /* %t %{strftime}t: arg is for strftime(3) */
	LOG_CLOCK,    /* %{sec}t %{msec_frac}t: unit */
	LOG_LINE,     /* %r */
	LOG_STATUS,   /* %s */
	LOG_BYTES,    /* %b %B: of the body */
	LOG_HEADER,   /* %{name}i */
	LOG_REPLY,    /* %{name}o */
	LOG_COOKIE,   /* %{name}C */
	LOG_VARIABLE, /* %{name}e %{name}n */
	LOG_FILE,     /* %f */
	LOG_PROTOCOL, /* %H */
	LOG_KEPT,     /* %k: earlier requests of the connection */
	LOG_METHOD,   /* %m */
	LOG_PORT,     /* %p %{local}p %{canonical}p */
	LOG_PEERPORT, /* %{remote}p */
	LOG_QUERY,    /* %q */
	LOG_TAKEN,    /* %T %{ms}T %D: unit */
	LOG_PATH,     /* %U: as sent, without the query */
	LOG_SERVER,   /* %v */
	LOG_HOST,     /* %V */
	LOG_STATE,    /* %X: X cut, + kept alive, - closed */
	LOG_IN,       /* %I: bytes of head and body of the request */
	LOG_OUT,      /* %O: bytes of head and body of the reply */
	LOG_LOCAL,    /* %A */
	LOG_ID,       /* %L: of the request */
	LOG_NUMBER,   /* %{c}L: "c17.3", as in the error log */
	LOG_BACKEND,  /* %{backend}x */
	LOG_CACHE,    /* %{cache}x: hot or cold */
	LOG_TRACE,    /* %{trace}x */
	LOG_TARGET,   /* %{url}x: as sent; the first line of a malformed head */
	LOG_TLS,      /* %{SSL_PROTOCOL}x ... */
	LOG_STAGE,    /* %{stat-us}x ...: stage */
};

struct log_piece {
	enum log_piece_kind kind;
	bool begin;   /* of times: when the request began; else its end */
	bool frac;    /* LOG_CLOCK: the part below a second, with leading zeros */
	uint64_t per; /* LOG_CLOCK, LOG_TAKEN: units in a second */
	enum stage stage;
	struct text arg;
};

struct log_format {
	unsigned n;
	bool clock; /* a piece needs the time in parts of a second, or how long it took */
	bool reply; /* a piece needs the head of the reply or its length */
	bool times; /* a piece needs the stages of the request */
	bool json;  /* LOG_FORMAT_JSON: values are in JSON, and absent values are empty */
	struct log_piece v[LOG_PIECES_MAX];
};

/* The arguments stay slices of text. */
bool log_format_parse(struct text text, struct log_format *, char *err, size_t errsize);
/* A value as lighttpd writes it: \" \\ \t \n \r ..., other bytes that are not printable ASCII as
 * \xHH. */
void log_format_escape(struct buf *, struct text);
/* The value between the quotes of a JSON string. */
void log_format_json(struct buf *, struct text);
/* The time at ns in the unit of the piece, or the part below a second. */
void log_format_clock(struct buf *, const struct log_piece *, uint64_t wall_ns);

#endif
