/* t/unit/server/no_memory.h -- each allocation of the life of a request fails in turn.
 *
 * The events are seeds of t/fuzz/.  Whatever fails, every connection ends, nothing leaks, and the
 * next client gets its file.  Allocations of libraries do not fail.
 * t/unit/allocations.h comes before the header of the events.
 * UP(), DOWN()   those of the header of the events
 */
#ifndef T_UNIT_SERVER_NO_MEMORY_H
#define T_UNIT_SERVER_NO_MEMORY_H

char *__real_strdup(const char *);
char *__wrap_strdup(const char *);

char *
__wrap_strdup(const char *s)
{
	return (fails() ? NULL : __real_strdup(s));
}

/* There is memory again. */
static void
next_client(void)
{
	struct io_op *op;

	v.by_hand = 0;
	client_comes();
	buf_str(&v.to_say[CLIENTS], "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
	op = recv_of(CLIENTS);
	g_assert_nonnull(op);
	sim_sent_clear(io, op->sock);
	settle();
	op = recv_of(CLIENTS);
	g_assert_nonnull(op); /* and it is kept */
	g_assert_cmpmem(sim_sent(io, op->sock).p, 12, "HTTP/1.1 200", 12);
}

/* Runs the seed, and its nth allocation fails.  False: the run has fewer allocations. */
static bool
one_fails(const struct fuzz_seed *s, unsigned nth, bool lasts)
{
	const uint8_t *p = (const uint8_t *)s->p;
	bool failed;

	memory.n = 0;
	memory.lasts = lasts;
	memory.first = nth;
	UP((unsigned)p[0] | (unsigned)p[1] << 8, p[2]);
	run_events(p + 3, s->n - 3);
	failed = memory.n >= nth;
	memory.first = 0;
	memory.lasts = false;
	all_end();
	if (!w->draining)
		next_client();
	DOWN();
	return (failed);
}

static void
test_each(gconstpointer lasts)
{
	const struct fuzz_seed *s;
	unsigned n, all = 0;

	for (s = fuzz_seeds; s->p != NULL; s++) {
		for (n = 1; one_fails(s, n, lasts != NULL); n++)
			g_test_message("seed %td, allocation %u", s - fuzz_seeds, n);
		all += n - 1;
	}
	g_test_message("%u allocations failed", all);
	g_assert_cmpuint(all, >, 100);
}

#endif
