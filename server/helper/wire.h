/* server/helper/wire.h -- the messages between server and helper process.
 *
 *   server --request--> helper     one message of a SOCK_SEQPACKET pair: kind, name, and the
 *                                  descriptor that takes the answer
 *   helper --names----> itself     from the child that read the configuration: all names that the
 *                                  server may ask for from now on; and to the guardian, for the
 *                                  next helper
 *   guardian --events--> server    on the same pair
 *   helper --answer---> server     on the descriptor of the request: a result with an open file, or
 *                                  a record (server/config/record.h)
 *   server --items----> new server in an upgrade, on the same descriptor: each is a kind, a name
 *                                  and an open descriptor; HELPER_LOAD is the end
 *
 * Each side checks what it reads, because an intruder may control the other side.  The functions
 * whose names end in _parse are pure.
 */
#ifndef SERVER_HELPER_WIRE_H
#define SERVER_HELPER_WIRE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/text.h"
#include "proxy-core/address.h"

#define ERRNO_MAX          4095    /* no system call has a larger errno */
#define HELPER_NAME_MAX    1024    /* bytes of a path or an address, with its NUL */
#define HELPER_WHY_MAX     128     /* bytes of a reason, with its NUL */
#define HELPER_LOAD_MAX_MS 3600000 /* largest server.reload-timeout */
#define HELPER_CAUSE_MAX   2048    /* bytes of what a new server says before it fails */

enum helper_kind {
	HELPER_LOAD = 1,       /* read the configuration; no name */
	HELPER_LOG,            /* open this log */
	HELPER_LISTEN,         /* listen on this address */
	HELPER_PIDFILE,        /* write the server's number into this file */
	HELPER_REMOVE_PIDFILE, /* remove that file */
	HELPER_RESOLVE,        /* look up the addresses of this backend: "host:port" */
	HELPER_SPAWN,          /* start this application: a line of server/config/check/spawn.h */
	HELPER_UPGRADE,        /* execute the program anew; no name */
	HELPER_CONTROL,        /* listen on this unix socket for accel-server ctl */
	/* Only handed over in an upgrade: a listening socket of the service manager. */
	HELPER_ACTIVATED,
	/* Wait until files of certificates change.  The name is the digest of the last record, or
	 * "-", and certificates_list(), in hexadecimal. */
	HELPER_RENEW,
	/* Only handed over in an upgrade: keys of session tickets, without a descriptor. */
	HELPER_TICKETS,
	HELPER_KINDS,
	/* Only names; the server does not ask for them, see cgi.h. */
	HELPER_CGI_PROGRAM,  /* an interpreter and its ending, see cgi.h */
	HELPER_CGI_ROOT,     /* a directory of scripts */
	HELPER_CGI_VARIABLE, /* of setenv.add-environment */
	HELPER_CGI_USER,     /* the user of the programs; backlog: how many run at a time */
	HELPER_CERTIFICATE,  /* a file that HELPER_RENEW reads */
};

struct helper_request {
	enum helper_kind kind;
	char name[HELPER_NAME_MAX];
};

/* A name of the configuration, with everything that is needed to open it. */
struct helper_name {
	/* HELPER_LOG, HELPER_LISTEN, HELPER_PIDFILE, HELPER_RESOLVE, HELPER_CGI_*,
	 * HELPER_CERTIFICATE; HELPER_LOAD: the end of the list; to the guardian
	 * HELPER_REMOVE_PIDFILE, too */
	uint32_t kind;
	uint32_t timeout_ms; /* HELPER_LOAD: deadline of the next load */
	int32_t backlog, defer_s;
	uint8_t both;        /* IPv4 on an IPv6 socket, too; 0: no */
	char congestion[16]; /* empty: the system's default */
	uint8_t keys;        /* HELPER_CERTIFICATE: enum tls_key_use; 0: the server keeps it */
	uint64_t list;       /* HELPER_CERTIFICATE: certificates_list(); otherwise 0 */
	uint8_t set_mode, set_owner; /* 0: no; not bool, because the byte may have any value */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	char name[HELPER_NAME_MAX];
};

/* The answer to HELPER_RESOLVE: only as many addresses as there are, or a reason as in a result. */
struct helper_addresses {
	int32_t err; /* 0 or -errno */
	int32_t spare;
	struct address v[ADDRESS_MAX];
};

enum helper_news {
	HELPER_DIED,
	HELPER_BACK,
	HELPER_GUARDED,   /* the guardian has died, and this is the next one */
	HELPER_KEYS_DIED, /* the process with the private keys */
};
#define HELPER_KEYS_UNCONFINED 2 /* its exit status if it could not give up its rights */

/* From the guardian, without a request. */
struct helper_event {
	uint32_t news;     /* enum helper_news */
	uint32_t lost;     /* helpers and guardians so far */
	int32_t status;    /* HELPER_DIED: of wait(2) */
	uint32_t pause_ms; /* HELPER_DIED: before the next one is forked */
};

/* 0: too long */
size_t helper_request_make(enum helper_kind, const char *name, char dst[HELPER_NAME_MAX + 1]);
/* 0 or -EINVAL */
int helper_request_parse(const char *p, size_t n, struct helper_request *);

/* 0, or -EPROTO: do not use *to. */
int helper_name_parse(const void *p, size_t n, struct helper_name *to);
/* The result in an answer: 0 or -errno of the helper; -EPROTO: not a result.  why: the helper's
 * words about the error in addition to errno, or empty. */
int helper_result_parse(const void *p, size_t n, char why[HELPER_WHY_MAX]);

/* The number of addresses at a->v, or -errno with why as above; -EPROTO: not such an answer.
 * n: its bytes. */
int helper_addresses_parse(const struct helper_addresses *a, size_t n, char why[HELPER_WHY_MAX]);

/* The answer to HELPER_UPGRADE. */
struct helper_upgraded {
	int status;        /* 0: the new server serves; its exit status, or 128 and its signal */
	pid_t pid;         /* of the new server */
	struct text cause; /* what it said until then; in the message */
};
int helper_upgraded_parse(const void *p, size_t n, struct helper_upgraded *); /* 0 or -EPROTO */

/* Sends one message, with a descriptor unless fd < 0; never waits.  0 or -errno. */
int helper_send(int sock, const void *p, size_t n, int fd);
/* Receives one message without waiting.  Returns its length; 0 at the end; -errno; -EMSGSIZE if the
 * message is longer than size.  *fd: its descriptor, or -1.  More than one descriptor is -EINVAL,
 * and all are closed. */
ssize_t helper_recv(int sock, void *p, size_t size, int *fd);

#endif
