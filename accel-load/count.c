#include "accel-load/count.h"

#include <stdlib.h>

#include "base/must.h"

const struct load_error_info load_errors[LOAD_ERRORS] = {
	[LOAD_CONNECT] = { "connect", "no connection: no route, or no free port or descriptor" },
	[LOAD_REFUSED] = { "refused", "nobody listens at the address" },
	[LOAD_RESET] = { "reset",
	    "the server reset the connection, or closed it without an answer" },
	[LOAD_TLS] = { "tls", "no handshake: the server does not speak TLS, or refuses ours" },
	[LOAD_TIMEOUT] = { "timeout",
	    "no whole answer within --timeout, or no byte within --silence" },
	[LOAD_SHORT] = { "short", "the body ended before its length" },
	[LOAD_LONG] = { "long", "more bytes than the length of the body" },
	[LOAD_WRONG] = { "wrong",
	    "other bytes, or another part, than expected (--verify, --range, --expect)" },
	[LOAD_STATUS] = { "status", "unexpected status (expected: --status, or any 2xx)" },
	[LOAD_MALFORMED] = { "malformed", "not an answer of the protocol" },
	[LOAD_STREAM] = { "stream", "the server reset the stream (RST_STREAM)" },
	[LOAD_REFUSED_STREAM] = { "refused_stream", "... without a look at it (REFUSED_STREAM)" },
	[LOAD_GOAWAY] = { "goaway", "the server ended the connection (GOAWAY with an error)" },
};

struct counts *
counts_new(void)
{
	return (calloc(1, sizeof(struct counts)));
}

void
counts_free(struct counts *c)
{
	free(c);
}

static uint64_t
get(const uint64_t *v)
{
	return (__atomic_load_n(v, __ATOMIC_RELAXED));
}

/* One writer; others see the old number or the new one. */
static void
grow(uint64_t *v, uint64_t n)
{
	__atomic_store_n(v, get(v) + n, __ATOMIC_RELAXED);
}

static void
grow_all(uint64_t *into, const uint64_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		grow(&into[i], get(&from[i]));
}

void
counts_add(struct counts *into, const struct counts *from)
{
	grow(&into->requests, from->requests);
	grow(&into->answered, from->answered);
	grow(&into->failed, from->failed);
	grow(&into->aborted, from->aborted);
	grow(&into->unanswered, from->unanswered);
	grow(&into->connects, from->connects);
	grow(&into->body_bytes, from->body_bytes);
	grow(&into->handshakes, from->handshakes);
	grow(&into->resumed, from->resumed);
	grow(&into->goaways, from->goaways);
	grow(&into->again, from->again);
	grow_all(into->errors, from->errors, LOAD_ERRORS);
	grow_all(into->status, from->status, COUNT_STATUSES);
	histogram_fine_merge(&into->latency, &from->latency);
	histogram_fine_merge(&into->first_byte, &from->first_byte);
	histogram_fine_merge(&into->connect, &from->connect);
	histogram_fine_merge(&into->handshake, &from->handshake);
}

void
count_requests(struct counts *c, unsigned n)
{
	grow(&c->requests, n);
}

void
count_withdrawn(struct counts *c, unsigned n)
{
	must(c->requests >= n);
	__atomic_store_n(&c->requests, c->requests - n, __ATOMIC_RELAXED);
}

void
count_connect(struct counts *c, uint64_t ns)
{
	grow(&c->connects, 1);
	histogram_fine_add(&c->connect, ns);
}

void
count_handshake(struct counts *c, bool resumed, uint64_t ns)
{
	grow(&c->handshakes, 1);
	grow(&c->resumed, resumed);
	histogram_fine_add(&c->handshake, ns);
}

void
count_goaway(struct counts *c)
{
	grow(&c->goaways, 1);
}

void
count_again(struct counts *c)
{
	grow(&c->again, 1);
}

void
count_first_byte(struct counts *c, uint64_t ns)
{
	histogram_fine_add(&c->first_byte, ns);
}

void
count_body(struct counts *c, uint64_t bytes)
{
	grow(&c->body_bytes, bytes);
}

void
count_answer(struct counts *c, int status, enum load_error how, uint64_t latency_ns)
{
	must(status >= 0 && (unsigned)status < COUNT_STATUSES);
	grow(&c->answered, 1);
	grow(&c->status[status], 1);
	if (how != LOAD_OK)
		grow(&c->errors[how], 1);
	histogram_fine_add(&c->latency, latency_ns);
}

void
count_error(struct counts *c, enum load_error kind, unsigned n)
{
	must(kind < LOAD_ERRORS);
	grow(&c->failed, n);
	grow(&c->errors[kind], n);
}

void
count_fault(struct counts *c, enum load_error kind)
{
	must(kind < LOAD_ERRORS);
	grow(&c->errors[kind], 1);
}

void
count_failed_latency(struct counts *c, uint64_t latency_ns)
{
	histogram_fine_add(&c->latency, latency_ns);
}

void
count_aborted(struct counts *c, unsigned n)
{
	grow(&c->aborted, n);
}

void
count_unanswered(struct counts *c, uint64_t age_ns)
{
	grow(&c->unanswered, 1);
	if (age_ns > 0)
		histogram_fine_add(&c->latency, age_ns);
}

void
count_overdue(struct counts *c, uint64_t youngest_ns, uint64_t oldest_ns, uint64_t n)
{
	grow(&c->requests, n);
	grow(&c->unanswered, n);
	histogram_fine_add_even(&c->latency, youngest_ns, oldest_ns, n);
}

uint64_t
count_errors(const struct counts *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < LOAD_ERRORS; i++)
		sum += get(&c->errors[i]);
	return (sum);
}

void
count_progress(const struct counts *c, struct count_progress *p)
{
	p->requests = get(&c->requests);
	p->answered = get(&c->answered);
	p->errors = count_errors(c);
	p->body_bytes = get(&c->body_bytes);
}
