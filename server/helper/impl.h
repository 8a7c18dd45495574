/* server/helper/impl.h -- shared by the files of server/helper/; no other file includes it.
 *
 *   helper.c   the server's side
 *   wire.c     messages
 *   guard.c    the guardian, which forks the helper process
 *   kept.c     what a helper process leaves to the next one
 *   process.c  the helper process: requests, children, names
 *   work.c     the work of a child
 *   spawn.c    applications that it starts
 *   renew.c    waits until certificates change
 *   keys.c     the process that keeps their private keys
 *   cgi*.c     the process that runs a CGI program
 *   log_program.c  commands that read logs
 *   upgrade.c  executes the program anew
 *   starter.c  tells the outcome of a start to a terminal, or to the old server
 */
#ifndef SERVER_HELPER_IMPL_H
#define SERVER_HELPER_IMPL_H

#include "server/config/config.h"
#include "server/helper/helper.h"
#include "server/helper/wire.h"

/* What each helper process has from the guardian. */
struct helper_of {
	int pair;      /* requests of the server; at its end of file the server has ended */
	int cgi;       /* runs programs for processes that connect to it; -1: for none */
	int keep;      /* to the guardian: names for the next helper */
	int keys;      /* sockets of the server's threads, for the process with private keys */
	int feed[2];   /* private keys: [0] of those who read them, [1] of that process */
	uint32_t lost; /* helpers and guardians so far */
	pid_t server;
	const char *file; /* the configuration */
};

struct helper_kept;

/* What a record leaves out. */
struct helper_hiding {
	const struct helper_of *of;
	uint8_t use; /* enum tls_key_use */
	int err;     /* why a key did not reach its process: no further one is sent */
};
int helper_hide_keys(void *hiding, struct text *file); /* a sources_hide_fn */
int helper_keys_feed(int feed[2]);                     /* of struct helper_of; 0 or -errno */
/* A socket to the process with the private keys, for any thread; see tls_keys_reach(). */
int helper_keys_connect(void *helper);
int helper_keys_fd(const struct helper *); /* such a socket is sent to it */
/* kept: the names of files that may have keys. */
_Noreturn void helper_keys_process(const struct helper_of *, const struct helper_kept *,
    pid_t guardian);

_Noreturn void helper_guard(const struct helper_of *);
/* For a child of the helper whose guardian has died. */
_Noreturn void helper_guard_again(const struct helper_of *, const struct helper_kept *);
_Noreturn void helper_process(const struct helper_of *, struct helper_kept *);
/* Ignores the signals for the server.  A descriptor that tells of children, or -1. */
int helper_signals_open(void);

/* ---- in a child; the result is its exit status */

/* Writes a record to reply, and the names in it to names and to the guardian. */
int helper_work_load(const struct helper_of *, int reply, int names);
/* One name of the configuration; waits while the helper is busy. */
void helper_tell(int names, struct helper_name *, enum helper_kind, const char *name);
/* server.username and server.groupname, if root starts the server. */
void helper_owner_of(const struct conf *, struct helper_name *);
void cgi_names_tell(const struct config *, int names); /* cgi_names.c */
/* Opens the named file or socket and sends the descriptor to reply. */
int helper_work_open(const struct helper_request *, const struct helper_name *, pid_t server,
    int reply);
/* Starts the command of the log's name "|COMMAND".  A descriptor that it reads from, or -errno. */
int helper_log_program(const struct helper_name *);
/* Sends the addresses, or what is wrong. */
int helper_work_resolve(const char *spec, int reply);
/* Waits until the files of certificates of a list differ from the record with a digest, and writes
 * the new record to reply.  asked: both, as of HELPER_RENEW. */
int helper_work_renew(const struct helper_of *, const struct helper_kept *, const char *asked,
    int reply);
/* Starts a new server, with reply as its socket of items, and answers. */
int helper_work_upgrade(int reply, uint32_t load_ms);
int helper_work_remove_pidfile(const char *path, pid_t server); /* 0 or -errno */

/* Starts the keeper of an application, which this process becomes or forks; -errno.  On success it
 * has answered and does not return. */
int helper_spawn(const struct helper_name *, int reply, const char **why);
/* Changes to the user of the name, if there is one. */
bool helper_become(const struct helper_name *);

#endif
