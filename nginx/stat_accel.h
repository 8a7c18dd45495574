/* nginx/stat_accel.h -- the module of nginx that makes cold files wait elsewhere.
 *
 *     names.c      which names nginx will look up for this request, in nginx's order
 *     memory.c     was the name in memory within the last second?      no system call
 *     probe.c      is it in memory now?                                system calls that never wait
 *     ask.c        equal misses share one question; a deadline each
 *     peer.c       fcgi-stat-accel opens and reads
 *     turns.c      which question is next
 *     records.c    the bytes of its questions and answers
 *     received.c   descriptors that come with them
 *     threads.c    or a thread of nginx does
 *     mounts.c     is it on a mount where each open() asks again?  Then a thread opens it, and
 *     given.c      nginx gets the descriptor
 *     phase.c      holds the request until then, and lets nginx go on
 *     upstream.c   the same for files of proxy_cache and its siblings
 *     heard.c      what other modules' directives say of the names
 *     counters.c   what all workers have counted
 *     status.c     the page that shows it
 *
 *   Thread   all functions run in the event loop of a worker, except read_file() of threads.c
 *   Owner    what is allocated from a request's pool ends with it; a question owns its name
 *   Units    ngx_msec_t is milliseconds, as ngx_current_msec */
#ifndef STAT_ACCEL_H
#define STAT_ACCEL_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <ngx_thread_pool.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

extern ngx_module_t ngx_http_stat_accel_module;

/* ---------------------------------------------------------------- one name */

/* What is known of a name. */
enum accel_kind {
	ACCEL_COLD, /* not in memory, so nothing is known */
	ACCEL_FILE, /* also a device, a socket: what nginx refuses without waiting */
	ACCEL_DIR,
	ACCEL_ABSENT, /* or not permitted */
	ACCEL_LATE,   /* the deadline has passed */
	ACCEL_FAILED, /* nobody could be asked: nginx goes on as without the module */
};

/* Bytes that will be sent. */
struct accel_range {
	off_t from;
	off_t to;     /* not sent any more */
	bool partial; /* a part of the file was asked for */
};

struct accel_name {
	ngx_str_t path; /* ends with a NUL that is not counted */
	struct accel_range range;
	bool list; /* a directory, and all in it */
	bool open; /* nginx gets the descriptor */
};

/* ---------------------------------------------------------------- configuration */

enum accel_handler { ACCEL_HANDLER_NONE, ACCEL_HANDLER_FILE, ACCEL_HANDLER_UPSTREAM };

/* Content handlers of other modules that open files. */
struct accel_known_handler {
	ngx_http_handler_pt handler;
	enum accel_handler kind;
};

struct accel_try {
	ngx_http_complex_value_t value;
	bool dir;
};

enum accel_suffix_use { ACCEL_SUFFIX_OFF, ACCEL_SUFFIX_ON, ACCEL_SUFFIX_ALWAYS };

#define ACCEL_SUFFIXES 3u
#define ACCEL_HANDLERS 8u
#define ACCEL_MOUNTS   4096u
#define ACCEL_CLIENTS  256u

/* An fcgi-stat-accel. */
struct accel_peer {
	ngx_str_t name;
	struct sockaddr *sockaddr;
	socklen_t socklen;
	ngx_uint_t number;
	/* of this worker */
	ngx_queue_t idle, busy; /* connections */
	ngx_queue_t waiting;    /* questions without a connection, by turn */
	ngx_uint_t links;
	uint16_t busy_of[ACCEL_MOUNTS]; /* links with a question, by mount */
	uint32_t turn, turn_of[ACCEL_CLIENTS];
	ngx_event_t watch;
	ngx_msec_t heard; /* when something came */
	bool asked_values, down;
};

struct accel_main_conf {
	ngx_array_t *peers; /* struct accel_peer * */
	struct accel_known_handler handlers[ACCEL_HANDLERS];
	ngx_uint_t handlers_n;
	ngx_uint_t memory_names;
	struct accel_table *table; /* counters.c */
	ngx_uint_t generation;     /* configurations of the table's life */
};

/* Does a thread open files for nginx?  AUTO: where each open() asks another program or machine. */
enum accel_open { ACCEL_OPEN_OFF, ACCEL_OPEN_ON, ACCEL_OPEN_AUTO };

struct accel_conf {
	ngx_flag_t enable;
	ngx_thread_pool_t *pool;
	struct accel_peer *peer; /* NULL: threads do all */
	ngx_msec_t remember;
	ngx_msec_t deadline;
	ngx_uint_t late; /* status of a reply; 0: nginx goes on */
	size_t warm;
	ngx_uint_t open;               /* enum accel_open */
	const struct accel_page *page; /* stat_accel_status */
	ngx_http_handler_pt handler;   /* another module's, in whose place stands ours */
	/* heard of other modules */
	ngx_array_t *tries;                    /* struct accel_try; not inherited, as try_files */
	ngx_array_t *indexes;                  /* ngx_http_complex_value_t */
	ngx_uint_t suffix_use[ACCEL_SUFFIXES]; /* enum accel_suffix_use */
	ngx_flag_t listing;
	ngx_flag_t dav;
};

/* heard.c */
ngx_int_t accel_listen(ngx_conf_t *cf);
void accel_listen_end(void);
ngx_int_t accel_heard_merge(ngx_conf_t *cf, struct accel_conf *prev, struct accel_conf *conf);

/* ---------------------------------------------------------------- a request */

enum accel_status {
	ACCEL_NONE,
	ACCEL_OFF,
	ACCEL_REMEMBERED,
	ACCEL_HOT,
	ACCEL_WARMED,
	ACCEL_WAS_LATE
};
enum accel_phase { ACCEL_BEFORE, ACCEL_TRY, ACCEL_CONTENT };

/* The name that is looked up: one of a group. */
struct accel_names {
	unsigned group;
	ngx_uint_t at;
	bool wants_dir; /* try_files */
};

struct accel_question;
struct link; /* peer.c */

struct accel_ctx {
	ngx_http_request_t *r;
	enum accel_phase phase;
	struct accel_names names;
	struct accel_name name;          /* the one that is looked up */
	struct accel_question *question; /* NULL: does not wait */
	ngx_queue_t link;                /* in the waiters of the question */
	ngx_event_t deadline;
	ngx_msec_t began;
	enum accel_kind answer;       /* ACCEL_COLD: none yet */
	ngx_open_file_cache_t *given; /* of this request; NULL: none */
	/* for the log; kept over internal redirects */
	enum accel_status status;
	bool failed; /* a name could not be asked for */
	ngx_msec_t waited;
};

/* phase.c */
ngx_int_t accel_phase_init(ngx_conf_t *cf);
void accel_stand_in(ngx_conf_t *cf, const struct accel_conf *prev, struct accel_conf *conf);
struct accel_ctx *accel_ctx(ngx_http_request_t *r);            /* NULL: no memory */
struct accel_ctx *accel_ctx_find(const ngx_http_request_t *r); /* NULL: has none */
void accel_answered(struct accel_ctx *ctx, const struct accel_question *q);
enum accel_kind accel_look(struct accel_ctx *ctx,
    struct accel_conf *conf); /* at ctx->name; ACCEL_COLD: waits */

/* names.c */
void accel_names_try(struct accel_names *n);
void accel_names_content(struct accel_names *n, const ngx_http_request_t *r);
/* NGX_OK, NGX_DECLINED: no more, NGX_ERROR: no memory */
ngx_int_t accel_name_next(ngx_http_request_t *r, const struct accel_conf *conf,
    struct accel_names *n, struct accel_name *name);
void accel_name_seen(struct accel_names *n, enum accel_kind kind);

/* upstream.c: the content handler in the place of one that may have a cache. */
ngx_int_t accel_upstream_handler(ngx_http_request_t *r);

/* ---------------------------------------------------------------- where names are looked up */

/* memory.c: names that were in memory until a moment ago. */
ngx_int_t accel_memory_init(ngx_cycle_t *cycle, ngx_uint_t names);
uint64_t accel_memory_key(const ngx_str_t *path);
enum accel_kind accel_memory_get(uint64_t key);
void accel_memory_put(uint64_t key, enum accel_kind kind, ngx_msec_t ms);

/* probe.c: never waits. */
const ngx_cached_open_file_t *accel_opened(const ngx_open_file_cache_t *cache,
    const ngx_str_t *path); /* NULL: not in this cache */
enum accel_kind accel_probe_opened(ngx_http_request_t *r,
    const struct accel_name *name); /* ACCEL_COLD, too: nginx has not opened it */
enum accel_kind accel_probe(const struct accel_name *name, bool read); /* read: just now */

void accel_ask_init(void);
/* NGX_OK: accel_answered() comes later; NGX_ERROR: nobody could be asked; NGX_BUSY: too many
 * questions are out. */
ngx_int_t accel_ask(struct accel_ctx *ctx, struct accel_conf *conf, const struct accel_name *name,
    uint64_t key);
void accel_ask_leave(struct accel_ctx *ctx);
/* A question about a file of the same mount is out for long: its disk may hang. */
bool accel_ask_is_slow(const ngx_str_t *path);

struct accel_question {
	ngx_queue_t link;      /* of those with this hash; of those that have ended */
	ngx_queue_t age;       /* of all, the oldest first */
	ngx_queue_t at;        /* of those that wait for a connection of the peer */
	bool waits;            /* so does it */
	bool called_back;      /* nobody waits for the answer */
	struct link *asked_on; /* NULL: no connection */
	ngx_queue_t waiters;   /* struct accel_ctx */
	uint64_t key;
	uint32_t mount; /* of the name: accel_mount_id() */
	uint32_t client_key, turn;
	struct accel_name name;
	ngx_str_t client; /* its address */
	size_t warm;
	const struct accel_peer *peer; /* of its location */
	ngx_thread_pool_t *pool;
	bool refuse; /* when it is late the client gets an error, and nginx opens nothing */
	ngx_msec_t since;
	enum accel_kind kind;
	/* name.open: */
	int fd; /* -1: none */
	struct stat st;
	ngx_err_t err;
	bool hot; /* it is in memory now */
};

/* Who was asked answers; q is not the caller's any more. */
void accel_question_end(struct accel_question *q, enum accel_kind kind);

/* mounts.c: of the mount that this path is on. */
void accel_mounts_init(void);
bool accel_mount_asks(const ngx_str_t *path); /* each open() asks another program or machine */
uint32_t accel_mount_id(const ngx_str_t *path);
bool accel_mount_is_memory(dev_t dev);

/* given.c */
void accel_give(struct accel_ctx *ctx, const struct accel_question *q);
/* The name of ctx, if it was given to this request; an internal redirect may ask again. */
enum accel_kind accel_given(struct accel_ctx *ctx);

/* turns.c */
bool accel_may_be_asked(struct accel_peer *p, const struct accel_question *q);
void accel_turn_begins(struct accel_peer *p, const struct accel_question *q);
void accel_turn_ends(struct accel_peer *p, const struct accel_question *q);
void accel_wait_for_turn(struct accel_peer *p, struct accel_question *q);
void accel_wait_no_more(struct accel_question *q);
struct accel_question *accel_next_turn(struct accel_peer *p); /* it waits no more; NULL: none */

/* peer.c and threads.c.  NGX_OK: accel_question_end() comes; NGX_ERROR: it does not. */
void accel_peer_init(struct accel_peer *p); /* in each worker */
void accel_peer_end(struct accel_peer *p);
/* Nobody waits any more.  True: q is the caller's again; false: accel_question_end() comes. */
bool accel_peer_abort(struct accel_question *q);
ngx_int_t accel_peer_ask(struct accel_peer *p, struct accel_question *q);
ngx_int_t accel_threads_ask(ngx_thread_pool_t *pool, struct accel_question *q);
/* A close(2) may ask another program or machine, and wait. */
void accel_threads_close(ngx_thread_pool_t *pool, int fd);

bool accel_peer_gives(const struct accel_peer *p); /* descriptors */

/* received.c: as recv(2), without a wait; NGX_AGAIN or NGX_ERROR.  q, which may be NULL, gets its
 * descriptor; not good: others came. */
ssize_t accel_receive(int fd, u_char *to, size_t size, struct accel_question *q, bool *good);
/* Describes q->fd.  ACCEL_COLD: it is of no use. */
enum accel_kind accel_received(struct accel_question *q);

/* vars.c */
ngx_int_t accel_vars_add(ngx_conf_t *cf);

/* ---------------------------------------------------------------- what is counted */

enum accel_counter {
#define C(name, dotted, doc) ACCEL_COUNT_##name,
#include "nginx/counters.def"
#undef C
	ACCEL_COUNTERS
};

#define ACCEL_PEERS_SHOWN 64u

/* Of one worker, in shared memory; other workers read it. */
struct accel_row {
	ngx_atomic_t pid;      /* 0: of no worker that lives */
	ngx_uint_t generation; /* of its configuration */
	ngx_uint_t out;        /* questions */
	uint64_t down;         /* a bit for each accelerator */
	uint64_t counts[ACCEL_COUNTERS];
} __attribute__((aligned(64)));

/* What a page shows. */
struct accel_sums {
	uint64_t counts[ACCEL_COUNTERS];
	ngx_uint_t workers;                 /* of this configuration */
	ngx_uint_t down[ACCEL_PEERS_SHOWN]; /* workers that found the accelerator down */
	ngx_uint_t out;
};

extern struct accel_row *accel_row; /* of this worker */

static inline void
accel_count(enum accel_counter counter)
{
	accel_row->counts[counter]++;
}

/* counters.c */
ngx_int_t accel_counters_add(ngx_conf_t *cf);
void accel_counters_init(const struct accel_main_conf *mcf); /* in each worker */
void accel_counters_end(void);
void accel_counters_sum(const struct accel_main_conf *mcf, struct accel_sums *sums);
/* Called before p->down changes. */
void accel_count_peer(const struct accel_peer *p, bool down);
void accel_count_request(const struct accel_ctx *ctx);

/* status.c */
const struct accel_page *accel_page_of(const ngx_str_t *word); /* NULL: there is none */
ngx_int_t accel_status_handler(ngx_http_request_t *r);

#endif
