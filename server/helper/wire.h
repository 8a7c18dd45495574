/* server/helper/wire.h -- what server and helper process say to each other.
 *
 *   server --request--> helper     one message of a SOCK_SEQPACKET pair: kind, name; and one descriptor to answer to
 *   helper --names----> itself     from the child that read the configuration: what may be asked for from then on
 *   helper --answer---> server     on the descriptor of the request: a result with an open file, or a record (server/config/record.h)
 *
 * Each side checks what it reads: the other one may have been taken over.  The functions whose names end in _parse are pure.
 */
#ifndef SERVER_HELPER_WIRE_H
#define SERVER_HELPER_WIRE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ERRNO_MAX 4095             /* no call of the system has another -errno */
#define HELPER_NAME_MAX 1024       /* bytes of a path or an address, with its NUL */
#define HELPER_LOAD_MAX_MS 3600000 /* the most that server.reload-timeout can be */

enum helper_kind {
	HELPER_LOAD = 1, /* read the configuration; no name */
	HELPER_LOG,      /* open this log */
	HELPER_LISTEN,   /* listen on this address */
	HELPER_PIDFILE,  /* write the server's number into this file */
	HELPER_UNPID,    /* remove that file */
	HELPER_KINDS
};

struct helper_request {
	enum helper_kind kind;
	char name[HELPER_NAME_MAX];
};

/* What the configuration names, with all that is needed to open it. */
struct helper_name {
	uint32_t kind;       /* HELPER_LOG, HELPER_LISTEN, HELPER_PIDFILE; HELPER_LOAD: the end of the list */
	uint32_t timeout_ms; /* of the end: for the next load */
	int32_t backlog;
	char congestion[16]; /* empty: the system's */
	uint8_t set_mode, set_owner; /* 0: no; no bool, because any byte may come */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	char name[HELPER_NAME_MAX];
};

size_t helper_request_make(enum helper_kind, const char *name, char dst[HELPER_NAME_MAX + 1]); /* 0: too long */
int helper_request_parse(const char *p, size_t n, struct helper_request *);                   /* 0 or -EINVAL */

/* 0, or -EPROTO: *to is not to be used. */
int helper_name_parse(const void *p, size_t n, struct helper_name *to);
/* The result in an answer: 0 or -errno as the helper says; -EPROTO: this is no result. */
int helper_result_parse(const void *p, size_t n);

/* One message, with a descriptor unless fd < 0; never waits.  0 or -errno. */
int helper_send(int sock, const void *p, size_t n, int fd);
/* One message without waiting: its length; 0 at the end; -errno; -EMSGSIZE when it is longer than size.  *fd: the
 * descriptor that came with it, -1: none.  More than one is -EINVAL, and all are closed. */
ssize_t helper_recv(int sock, void *p, size_t size, int *fd);

#endif
