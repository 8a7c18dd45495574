/* io/tls/tickets.h -- the keys of session tickets: of the process, so that clients resume at any
 * worker and after a reload.
 *
 * A ticket holds the keys of its session, so who has its key can read what was sent.  Keys
 * therefore change: a new one comes every TLS_TICKET_S seconds, and older ones are kept for the
 * tickets that are still valid.  They are in memory only, and in no core file.  An upgrade hands
 * them to the next process: tls.h.
 *
 * With ssl.stek-file the keys are those of a file instead, which other machines have, too: stek.h.
 *
 * Errors   false: no such key; or no random bytes.
 * Thread   any; one lock.
 */
#ifndef IO_TLS_TICKETS_H
#define IO_TLS_TICKETS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#define TLS_TICKET_S    7200u /* also how long a ticket is valid */
#define TLS_TICKET_KEYS 3u
#define TLS_TICKET_NAME 16u

struct tls_ticket_key {
	unsigned char name[TLS_TICKET_NAME], aes[32], hmac[32];
	uint64_t made_ns;       /* 0: no key */
	uint64_t from_s, end_s; /* of a file, since 1970; end_s 0: our own */
};

/* The key for new tickets.  Of files that have none now: one that opens nothing. */
bool tls_ticket_newest(uint64_t now_ns, struct tls_ticket_key *);
/* The key of this name; *old: there is a newer one. */
bool tls_ticket_find(const unsigned char name[TLS_TICKET_NAME], struct tls_ticket_key *, bool *old);

void tls_tickets_use(SSL_CTX *);

/* ---- for stek.c */

/* No core file has these bytes.  NULL: no memory. */
void *tls_ticket_memory(size_t n);
void tls_ticket_memory_free(void *, size_t n); /* NULL is allowed */
/* Takes keys of files only, and this one for new tickets; NULL: none yet, or the last ones. */
void tls_tickets_share(const struct tls_ticket_key *);

#endif
