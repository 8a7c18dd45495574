/* server/module/auth.h -- shared by the auth_*.c files; no other file includes it.
 *
 *   auth.c          a request: which rule, the answer 401, the delay after a failure
 *   auth_rules.c    auth.require and the files of users, as the configuration names them
 *   auth_check.c    in a thread: reads the files, compares
 *   auth_hash.c     MD5, SHA-256, the hashes of htpasswd, the secret of the process
 *   auth_digest.c   nonces, challenges, the response of a client
 *   auth_cache.c    what was checked a moment ago; which clients failed
 */
#ifndef SERVER_MODULE_AUTH_H
#define SERVER_MODULE_AUTH_H

#include "base/arena.h"
#include "files/root.h"
#include "io/io.h"
#include "wire/authorization.h"
#include "wire/user_file.h"

struct buf;
struct worker_base;

#define AUTH_FILE_MAX  (4u << 20) /* bytes of a file of users */
#define AUTH_NONCE_MS  600000u    /* a nonce is good for ten minutes, as with lighttpd */
#define AUTH_DELAY_MS  1000u      /* between failures of a client */
#define AUTH_CHECK_MS  20000u     /* a check takes longer only if the machine is overloaded */
#define AUTH_DELAYS_MS 10000u /* the longest delay, of a client that fails on many connections */
#define HEX_MAX        65u    /* a SHA-256 in digits, with a NUL */
#define AUTH_KEY       32u    /* bytes of a keyed hash */
#define AUTH_CACHE_S   2u     /* default of auth.cache */

enum auth_method { AUTH_BASIC, AUTH_DIGEST, AUTH_EXTERN };
enum { AUTH_MD5 = 1, AUTH_SHA256 = 2 }; /* algorithms */

struct auth_names {
	size_t n;
	struct text *v;
};

struct auth_row {
	struct text prefix; /* of the path */
	enum auth_method method;
	unsigned algorithms;
	struct text realm;        /* as in the setting */
	struct text realm_quoted; /* as in a challenge */
	struct text secret;       /* nonce_secret; .n 0: that of the process */
	bool any_user;
	struct auth_names users, groups, hosts;
};

/* auth.require of one block.  A thread may use it longer than its configuration lives. */
struct auth_rules {
	uint32_t refs; /* atomic */
	size_t n;
	struct arena mem;
	struct auth_row *rows;
};

/* A file of users or groups: its directory is open, so a new file of that name is found. */
struct auth_file {
	uint32_t refs; /* atomic */
	struct root dir;
	char *path, *name;
};

struct auth_rules *auth_rules_ref(const struct auth_rules *);
void auth_rules_put(struct auth_rules *);
struct auth_file *auth_file_ref(const struct auth_file *);
void auth_file_put(struct auth_file *);
/* May block.  The bytes are yours; .p NULL: *err is -errno, or -EFBIG if there are more than
 * AUTH_FILE_MAX. */
struct text auth_file_read(const struct auth_file *, int *err);

/* ---- a check, in a thread */

enum auth_result {
	AUTH_REFUSED,
	AUTH_GRANTED,
	AUTH_BROKEN, /* a file cannot be read: nobody gets in */
};

struct auth_check {
	struct io_work work;
	struct auth_rules *rules;
	const struct auth_row *row;
	struct auth_file *users, *groups; /* NULL: not set */
	enum user_format format;
	char *remote;
	/* what the client said: Basic, or Digest with an algorithm */
	struct authorization said;
	bool digest;
	unsigned algorithm;
	char *method; /* of the request */
	enum auth_result result;
	const char *why; /* for the log */
	int err;
};
/* NULL: no memory.  work.refs is 1. */
struct auth_check *auth_check_new(void);

/* ---- hashes */

/* Digits of the hash of the parts, joined with colons; parts end with .p NULL. */
size_t auth_hash(unsigned algorithm, const struct text *parts, char hex[HEX_MAX]);
/* The password fits the hash of a line of htpasswd.  Takes long. */
bool auth_password_fits(struct text hash, const char *password);
/* A hash that outsiders cannot compute; secret .n 0: that of the process. */
void auth_keyed(struct text secret, const struct text *parts, size_t n,
    unsigned char key[AUTH_KEY]);

/* ---- Digest */

enum auth_digest { DIGEST_OK, DIGEST_STALE, DIGEST_WRONG, DIGEST_BAD };
/* What can be judged without the password.  Sets *algorithm. */
enum auth_digest auth_digest_judge(const struct auth_row *, const struct authorization *,
    struct text target, uint64_t now_s, unsigned *algorithm);
/* secret: the hash of user, realm and password, in digits. */
bool auth_digest_fits(const struct auth_check *, struct text secret);
/* The lines WWW-Authenticate of a 401. */
void auth_challenge(const struct auth_row *, uint64_t now_s, bool stale, struct buf *lines);

/* ---- memory of a worker */

void auth_memory_stop(struct worker_base *);
bool auth_cache_has(struct worker_base *, const unsigned char key[AUTH_KEY]);
void auth_cache_add(struct worker_base *, const unsigned char key[AUTH_KEY], uint64_t seconds);
/* The client failed: milliseconds to wait before it gets an answer.  They count from since_ns, the
 * begin of the check, so the time of an answer does not tell how long the check took. */
unsigned auth_failed_wait(struct worker_base *, uint32_t client, uint64_t since_ns);

#endif
