/* server/config/record.h -- the outside input of a configuration: files, output of commands,
 * patterns, addresses of hosts.
 *
 *   direct   asks the system (a NULL pointer): accel-server -t, -p and -1
 *   record   asks the system and writes each question and its answer to a descriptor: a child of
 *            the helper process
 *   replay   answers from such a record: the running server, which must neither wait nor fork
 *
 * The parser always asks the same questions in the same order, so a replay gives the same result
 * and the same messages.
 *
 * Errors   sources_get() always answers; -ENODATA: the record does not have the answer.
 * Owner    an answer is the caller's; free it with source_free().
 * Thread   one at a time.  direct and record may block, replay never does.
 */
#ifndef SERVER_CONFIG_RECORD_H
#define SERVER_CONFIG_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

#define SOURCES_FILE_MAX   (16u << 20) /* bytes of one answer */
#define SOURCES_RECORD_MAX (64u << 20) /* bytes of one record */

enum source_kind {
	SOURCE_STDIN, /* standard input; the key is its name in messages */
	SOURCE_FILE,  /* a path; extra: the path without links */
	SOURCE_SHELL, /* a command for /bin/sh; status: as from waitpid(2) */
	SOURCE_GLOB,  /* a pattern; bytes: paths, each with a NUL after it */
	SOURCE_HOST,  /* "host:port"; bytes: struct address[] */
	SOURCE_KINDS
};

struct source {
	int err; /* 0 or -errno; -EFBIG: more than SOURCES_FILE_MAX */
	int status;
	struct text bytes;
	/* NULL: none; for an error, its text if that says more than err */
	char *extra;
};

struct sources;

/* dir: working directory of commands */
struct source sources_get(struct sources *, enum source_kind, const char *key, const char *dir);
void source_free(struct source *);
/* asks the system; for record.c */
struct source source_read(enum source_kind, const char *key, const char *dir);

struct sources *sources_record(int fd);
/* From now on a record has what hide() leaves of each file.  The bytes are of malloc(3), before and
 * after.  0, or -errno, which takes the place of the file. */
typedef int sources_hide_fn(void *arg, struct text *file);
void sources_hide(struct sources *, sources_hide_fn *hide, void *arg);
/* The record is complete.  memory: bytes that its reader used; 0: the reader refused the
 * configuration. */
void sources_end(struct sources *, uint64_t memory);

struct sources *sources_replay(void);
/* adds bytes of a record.  0, -EPROTO, -EFBIG, -ENOMEM */
int sources_feed(struct sources *, const void *p, size_t n);
bool sources_whole(const struct sources *);
uint64_t sources_memory(const struct sources *); /* the value passed to sources_end() */
/* complete, but its reader refused the configuration */
bool sources_refused(const struct sources *);
/* what ended the record early; NULL: unknown */
const char *sources_failure(const struct sources *);
/* Writes the question that has no answer yet, in words; nothing if there is none. */
void sources_waits_for(const struct sources *, struct buf *out);
/* The digest of a whole record, in hexadecimal digits; free it with g_free(). */
char *sources_digest(const struct sources *);
void sources_free(struct sources *);

/* Writes an item that says why the record ends early, for the parent of a recorder that died. */
size_t sources_put_failure(char *dst, size_t size, const char *why);

#endif
