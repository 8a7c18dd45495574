/* server/module/deflate.h -- deflate.*: which replies are compressed, how, and the compressed forms
 * of files.
 *
 *   file entry (files/hold) --> variant: gzip      READY: head and bytes, sent like a hot file
 *        |                  '-> variant: br        MAKING: a thread compresses; requests wait in it
 *        `-- holds them; a new version of the file is a new entry without variants
 *
 * Equal requests of a worker join one compression.  A request waits DEFLATE_PATIENCE_MS at most,
 * and gets the file then; the compression goes on for the next one.
 *
 * Bounds   bytes and descriptors of all variants of a worker; the least recently used goes first.
 *          DEFLATE_MAKING compressions at a time.
 * Thread   the worker's.
 */
#ifndef SERVER_MODULE_DEFLATE_H
#define SERVER_MODULE_DEFLATE_H

#include "base/list.h"
#include "base/text.h"
#include "server/module/module.h"
#include "wire/http1/accept_encoding.h"

#define DEFLATE_PATIENCE_MS 2000u
#define DEFLATE_MAKING      64u           /* of a worker */
#define DEFLATE_BYTES       (16u << 20)   /* of variants in memory, of a worker */
#define DEFLATE_FDS         64u           /* of variants in the cache on disk, of a worker */
#define DEFLATE_KEEP        (128u << 10)  /* a longer result is a file of the cache */
#define DEFLATE_KEEP_ALONE  (1024u << 10) /* ... or given up */

/* The forms of the files of a worker. */
struct variants {
	struct worker_base *w;
	struct list used;   /* ready ones, the least recently used first */
	struct list making; /* each has an op in flight */
	unsigned nmaking, nfds;
	uint64_t bytes;
};

struct deflate_wait { /* a request that waits for a compressed form */
	struct list link;
	struct request *r;
	struct file_entry
	    /* counted while the request waits, also for a sibling; NULL: it does not wait */
	    *entry;
	unsigned sibling; /* the one that is looked up */
};
extern struct deflate_wait slot_deflate_wait;

struct file_entry;
struct request;
struct site;
struct reply_form; /* server/reply/reply.h */

/* Settings of a site, from its values: they were checked at start. */
void deflate_of(struct site *);
/* What the client takes. */
void deflate_accepts(const struct request *, struct accept_encoding *);
/* The machine has more to do than deflate.max-loadavg. */
bool deflate_is_busy(struct request *);

/* A file in a form that the client takes. */
enum formed deflate_file(struct request *, struct file_entry *);
/* As deflate_file(), with a file beside this one that is compressed already: FILE.gz ... */
enum formed deflate_sibling(struct request *, struct file_entry *);
/* A file with this form belongs to the entry; NULL: no memory. */
struct reply_form *deflate_form_of_sibling(struct request *, struct file_entry *,
    struct file_entry *sibling, enum coding);

#endif
