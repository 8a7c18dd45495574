/* server/config/record.h -- what a configuration takes from outside: files, output of commands, patterns, addresses of hosts.
 *
 *   direct   asks the system (a NULL pointer): accel-server -t, -p and -1
 *   record   asks the system and writes each question and its answer to a descriptor: a child of the helper process
 *   replay   answers from such a record: the running server, which must neither wait nor fork
 *
 * The parser asks the same questions in the same order each time, so a replay gives the same result and the same messages.
 *
 * Errors   sources_get() always answers; -ENODATA: the record does not have it.
 * Owner    an answer is the caller's; source_free().
 * Thread   one at a time.  direct and record may block, replay never does.
 */
#ifndef SERVER_CONFIG_RECORD_H
#define SERVER_CONFIG_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

#define SOURCES_FILE_MAX (1u << 20)    /* bytes of one answer */
#define SOURCES_RECORD_MAX (64u << 20) /* bytes of one record */

enum source_kind {
	SOURCE_STDIN, /* standard input; the key is its name */
	SOURCE_FILE,  /* a path; extra: the path without links */
	SOURCE_SHELL, /* a command for /bin/sh; status: as of waitpid(2) */
	SOURCE_GLOB,  /* a pattern; bytes: paths, each with a NUL behind it */
	SOURCE_HOST,  /* "host:port"; bytes: struct address[] */
	SOURCE_KINDS
};

struct source {
	int err;           /* 0 or -errno; -EFBIG: more than SOURCES_FILE_MAX */
	int status;
	struct text bytes;
	char *extra;       /* NULL: none; of an error what it is in words, if that says more than err */
};

struct sources;

struct source sources_get(struct sources *, enum source_kind, const char *key, const char *dir); /* dir: of commands */
void source_free(struct source *);
struct source source_read(enum source_kind, const char *key, const char *dir); /* direct; for record.c */

struct sources *sources_record(int fd);
/* The record is whole.  memory: what its reader has used; 0: it refused the configuration. */
void sources_end(struct sources *, uint64_t memory);

struct sources *sources_replay(void);
int sources_feed(struct sources *, const void *p, size_t n); /* more of a record.  0, -EPROTO, -EFBIG, -ENOMEM */
bool sources_whole(const struct sources *);
uint64_t sources_memory(const struct sources *);             /* as given to sources_end() */
bool sources_refused(const struct sources *);                /* whole, but its reader found a mistake */
const char *sources_failure(const struct sources *);         /* what ended the record early; NULL: not known */
/* The question that has no answer yet, in words; nothing when there is none. */
void sources_waits_for(const struct sources *, struct buf *out);
void sources_free(struct sources *);

/* One item that says why there will be no end; for the parent of a recorder that died. */
size_t sources_put_failure(char *dst, size_t size, const char *why);

#endif
