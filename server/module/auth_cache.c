/* server/module/auth_cache.c -- what a worker remembers of earlier requests: users that were
 * checked a moment ago, and clients that failed.
 *
 * A page with thirty images costs one crypt(3), not thirty.  An entry is a keyed hash of rule, user
 * and password, so the memory of the process has no password longer than a check lasts.
 *
 * Bounds   CACHED checks and FAILED clients; a new one takes the place of another with the same
 *          slot.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "server/module/auth.h"
#include "server/request/slots.h"
#include "server/worker/base.h"

#define CACHED 256u
#define FAILED 256u

struct auth_memory {
	struct {
		unsigned char key[AUTH_KEY];
		uint64_t until_ns;
	} cached[CACHED];
	uint64_t failed_until_ns[FAILED];
};

static WORKER_SLOT(struct auth_memory *, memory); /* NULL: no password was checked yet */

static struct auth_memory *
memory_of(struct worker_base *w)
{
	struct auth_memory **m = worker_slot(w, memory);

	if (*m == NULL)
		*m = calloc(1, sizeof(**m));
	return (*m);
}

void
auth_memory_stop(struct worker_base *w)
{
	free(*worker_slot(w, memory));
	*worker_slot(w, memory) = NULL;
}

bool
auth_cache_has(struct worker_base *w, const unsigned char key[AUTH_KEY])
{
	struct auth_memory *m = *worker_slot(w, memory);

	return (
	    m != NULL && m->cached[key[0] % CACHED].until_ns > io_now(w->io) &&
	    text_eq_secret((struct text){ (const char *)m->cached[key[0] % CACHED].key, AUTH_KEY },
		(struct text){ (const char *)key, AUTH_KEY }));
}

void
auth_cache_add(struct worker_base *w, const unsigned char key[AUTH_KEY], uint64_t seconds)
{
	struct auth_memory *m = memory_of(w);

	if (m == NULL || seconds == 0)
		return;
	memcpy(m->cached[key[0] % CACHED].key, key, AUTH_KEY);
	m->cached[key[0] % CACHED].until_ns = io_now(w->io) + seconds * NS_PER_S;
}

unsigned
auth_failed_wait(struct worker_base *w, uint32_t client, uint64_t since_ns)
{
	struct auth_memory *m = memory_of(w);
	uint64_t now = io_now(w->io), *until;

	if (m == NULL)
		return (AUTH_DELAY_MS);
	until = &m->failed_until_ns[client % FAILED];
	*until = (*until > since_ns ? *until : since_ns) + AUTH_DELAY_MS * NS_PER_MS;
	if (*until > now + AUTH_DELAYS_MS * NS_PER_MS)
		*until = now + AUTH_DELAYS_MS * NS_PER_MS;
	return (*until > now ? (unsigned)((*until - now) / NS_PER_MS) + 1 : 1);
}
