/* server/request.h -- what a connection needs while it works on requests; an idle one has none.
 *
 * Owner    the connection; recycled by its worker.  Handlers fill the body and say so to conn.h.
 */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "base/arena.h"
#include "base/buf.h"
#include "io/body.h"
#include "io/sender.h"
#include "wire/http1.h"
#include "server/config/site.h"
#include "server/files/stat.h"
#include "wire/validate.h"

struct conn;
struct relay; /* handler/proxy_impl.h */
struct spool;

#define REQUEST_ARENA 2048

struct request {
	struct conn *conn;
	struct worker *worker;
	const struct conf *conf;
	struct site *site;
	struct http_request http;
	struct text head;      /* the bytes http was parsed from */
	bool head_kept;        /* they are in the arena, not in a lent buffer */
	char *path;            /* decoded, clean, NUL behind it; in the arena */
	size_t path_len;
	int status;            /* of the reply; 0: none yet */
	uint64_t body_bytes;   /* of the reply, without head */
	uint64_t started_ns;   /* head complete */
	bool cold;             /* waited for the file system */
	/* static lookup */
	struct stat_wait wait;
	struct stat_scope *scope; /* of the look-up that is on its way */
	struct text lookup;             /* path below it; in the arena */
	unsigned index_try;             /* index file names tried so far */
	const struct reply_extra *extra;
	struct io_stamps open;          /* of the op that opened the file, when we waited for it */
	/* request body */
	int64_t body_left;              /* -1: chunked */
	struct http1_chunked chunked;
	struct spool *upload;           /* body for an application; NULL: none */
	struct spool *kept;             /* reply of an application that its client has not read yet; NULL: none */
	struct relay *relay;            /* in the arena; NULL: not proxied */
	uint64_t proxy_queue_ns, proxy_ns;
	/* reply */
	struct body body;
	struct sender sender;
	struct sender_times times;
	struct arena arena;
	struct list link;               /* worker's free list */
	char lent[REQUEST_ARENA];
};

/* Copies what the request points at into its arena: call before waiting for anything. */
bool request_keep(struct request *);

/* Holds these values for the request instead of those before; NULL: none. */
void request_use(struct request *, const struct conf *);
void request_drop_spools(struct request *); /* bodies that wait; nothing of them comes back any more */

static inline struct text
request_path(const struct request *r)
{
	return ((struct text){r->path, r->path_len});
}

#endif
