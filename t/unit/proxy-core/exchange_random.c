/* t/unit/proxy-core/exchange_random.c -- random orders of events, losses and delays. */
#include "t/unit/proxy-core/exchange_test.h"

/* Finishes a random op in flight in a random way. */
static void
random_event(void)
{
	static const int errors[] = { -ECONNREFUSED, -EAGAIN, -EMFILE, -ECONNRESET };
	struct io_op *op;
	struct buf b;
	unsigned n;

	for (n = 0; sim_nth(io, n) != NULL; n++)
		;
	if (n == 0)
		return;
	op = sim_nth(io, (unsigned)g_test_rand_int_range(0, (int)n));
	switch (op->kind) {
	case IO_CONNECT:
		sim_finish(io, op,
		    g_test_rand_int_range(0, 4) > 0 ? 0 : errors[g_test_rand_int_range(0, 4)]);
		break;
	case IO_SEND:
		if (g_test_rand_int_range(0, 20) == 0)
			sim_finish(io, op, -EPIPE);
		else
			sim_send(io, op, (size_t)g_test_rand_int_range(1, 2000));
		break;
	case IO_RECV:
		buf_init(&b, 0);
		switch (g_test_rand_int_range(0, 10)) {
		case 0: sim_finish(io, op, 0); break;
		case 1: put_end(&b, (unsigned)g_test_rand_int_range(0, 4)); break;
		case 2: put_stderr(&b, "stderr\nline"); break;
		case 3: put_stdout(&b, "A: 1\n"); break;
		case 4:
		case 5: put_stdout(&b, "A: 1\n\nbody"); break;
		default: put_stdout(&b, "A: 1\n\nbody"); put_end(&b, 0);
		}
		if (b.n > 0)
			sim_recv(io, op,
			    (struct text){ b.p, g_test_rand_int_range(0, 8) > 0 ? b.n : b.n / 2 });
		buf_free(&b);
		break;
	default: sim_advance_ms(io, (uint64_t)g_test_rand_int_range(1, 400));
	}
}

static void
random_client(struct client *asker)
{
	static const char *const methods[] = { "GET", "HEAD", "POST" };
	char some[3000] = { 'x' };
	bool running = asker->x != NULL;

	switch (g_test_rand_int_range(0, 8)) {
	case 0:
	case 1:
	case 2:
		if (running)
			break;
		client_free(asker);
		asker->pause_at_body = g_test_rand_int_range(0, 4) == 0;
		asker->forget_at_head = g_test_rand_int_range(0, 8) == 0;
		asker->forget_at_body = g_test_rand_int_range(0, 8) == 0;
		asker->drain = g_test_rand_int_range(0, 2) == 0;
		ask_with(asker, methods[g_test_rand_int_range(0, 3)],
		    g_test_rand_int_range(0, 3) == 0 ? 100000 : 0);
		break;
	case 3:
		if (running)
			exchange_forget(&asker->x, g_test_rand_int_range(0, 2) == 0);
		break;
	case 4:
		if (running)
			exchange_pause(asker->x);
		break;
	case 5:
		if (running)
			exchange_resume(asker->x);
		break;
	default:
		if (running)
			exchange_body(asker->x, (struct text){ some, sizeof(some) });
	}
}

TEST("/exchange/each random order of events ends every exchange once")
{
	struct client all[8] = { 0 };
	int round, i, k;

	conf = a_conf(two, 2);
	conf.balancer = "round-robin";
	for (round = 0; round < 300; round++) {
		conf.max_keep_alive_requests = (unsigned)(round % 3 * 2);
		set_up();
		for (i = 0; i < 600; i++) {
			random_client(&all[g_test_rand_int_range(0, 8)]);
			for (k = g_test_rand_int_range(0, 3); k > 0; k--) {
				random_event();
				if (g_test_rand_int_range(0, 2) == 0)
					sim_run(io);
			}
		}
		sim_run(io);
		for (k = 0; k < 8; k++) {
			if (all[k].x != NULL) {
				all[k].pause_at_body = false;
				exchange_resume(all[k].x);
				/* Without a body, it ends by itself. */
				if (all[k].req.content_length > 0)
					exchange_forget(&all[k].x, false);
			}
		}
		for (k = 0; k < 40; k++)
			sim_advance_ms(io, 11000);
		for (k = 0; k < 8; k++) {
			g_assert_null(all[k].x);
			g_assert_cmpint(all[k].ends, <=, 1);
			client_free(&all[k]);
		}
		g_assert_true(upstream_idle(up));
		tear_down();
	}
}
