/* io/tls/stek.c -- see stek.h */
#include "io/tls/stek.h"

#include <string.h>
#include "base/clock.h"
#include "io/tls/tickets.h"

struct tls_stek {
	struct tls_ticket_key key;
};

enum { FORMAT, FROM, END, HEAD }; /* numbers at the beginning of the file */

/* NULL: nothing. */
static const char *
fault_of(struct text file, const uint32_t head[HEAD])
{
	if (file.n != TLS_STEK_BYTES)
		return ("it is not a key of tickets: expected 92 bytes");
	if (head[FORMAT] != 0)
		return ("it is not a key of tickets: expected four bytes of zero at its beginning");
	if (head[END] < head[FROM])
		return ("its key ends before it begins");
	if (head[END] < clock_wall_ns() / NS_PER_S)
		return ("its key has ended");
	return (NULL);
}

static void
fill(struct tls_ticket_key *k, const uint32_t head[HEAD], const char *p)
{
	memcpy(k->name, p, sizeof(k->name));
	p += sizeof(k->name);
	memcpy(k->hmac, p, sizeof(k->hmac));
	p += sizeof(k->hmac);
	memcpy(k->aes, p, sizeof(k->aes));
	k->from_s = head[FROM];
	k->end_s = head[END];
	k->made_ns = clock_mono_ns();
}

struct tls_stek *
tls_stek_new(struct text file, const char **why)
{
	struct tls_stek *s = NULL;
	uint32_t head[HEAD] = { 0 };

	if (file.n >= sizeof(head))
		memcpy(head, file.p, sizeof(head));
	*why = fault_of(file, head);
	if (*why == NULL && (s = tls_ticket_memory(sizeof(*s))) == NULL)
		*why = "not enough memory";
	if (s != NULL)
		fill(&s->key, head, file.p + sizeof(head));
	return (s);
}

void
tls_stek_free(struct tls_stek *s)
{
	tls_ticket_memory_free(s, sizeof(*s));
}

void
tls_stek_use(const struct tls_stek *s)
{
	tls_tickets_share(s != NULL ? &s->key : NULL);
}
