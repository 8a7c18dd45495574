/* t/unit/io/queue_rows.c -- clients of one device: which is next, and which makes room when the
 * queue is full. */
#include <errno.h>
#include "t/unit/io/queue_test.h"

static void
put_all_away(void)
{
	struct io_job *j;

	while ((j = queue_pop_any(&q)) != NULL)
		g_free(j);
	queue_fini(&q);
}

/* Takes a job and returns its client; 0: none may run. */
static uint32_t
take_client(struct io_job **out)
{
	*out = queue_take(&q);
	return (*out != NULL ? (*out)->turn.client : 0);
}

/* Two of four places, even while nobody else comes. */
TEST("/rows/limit-of-a-client")
{
	struct io_job *j, *run1[2];
	int i;

	queue_init(&q, 4, 4, 100, 0);
	q.per_client = 2;
	for (i = 0; i < 4; i++) {
		j = push(1, 1, i);
		g_assert_cmpint(queue_client_is_full(&q, j), ==, i >= 2);
	}
	for (i = 0; i < 2; i++)
		g_assert_cmpuint(take_client(&run1[i]), ==, 1);
	g_assert_false(queue_ready(&q));
	g_assert_null(queue_take(&q));
	j = push(1, 2, 10);
	g_assert_false(queue_client_is_full(&q, j));
	g_assert_true(queue_ready(&q)); /* a place was left */
	g_assert_cmpuint(take_client(&j), ==, 2);
	ran(j);
	g_assert_null(queue_take(&q));
	ran(run1[0]);
	g_assert_cmpuint(take_client(&j), ==, 1);
	g_assert_null(queue_take(&q));
	ran(j);
	ran(run1[1]);
	put_all_away();
}

/* Client 1 has filled all places with jobs that take long.  Client 2 comes with many short ones: as
 * they end it has the next place, until both have as many. */
TEST("/rows/fewest-running-goes-next")
{
	struct io_job *jobs[8 + 8], *j, *run1[4];
	int i, n = 0;

	queue_init(&q, 4, 4, 100, 0);
	for (i = 0; i < 8; i++)
		jobs[n++] = push(1, 1, 100 + i);
	for (i = 0; i < 4; i++)
		g_assert_cmpuint(take_client(&run1[i]), ==, 1); /* alone it may have all */
	for (i = 0; i < 8; i++)
		jobs[n++] = push(1, 2, 200 + i);
	queue_ran(&q, run1[0]);
	g_assert_cmpuint(take_client(&j), ==, 2);
	queue_ran(&q, j); /* short: the place is not the first client's again */
	g_assert_cmpuint(take_client(&j), ==, 2);
	queue_ran(&q, run1[1]);
	g_assert_cmpuint(take_client(&j), ==, 2);
	queue_ran(&q, run1[2]);
	g_assert_cmpuint(take_client(&j), ==, 1);
	g_assert_cmpuint(take_client(&j), ==, 0);
	while (queue_pop_any(&q) != NULL)
		;
	for (i = 0; i < n; i++) {
		if (jobs[i]->turn.row != NULL)
			queue_ran(&q, jobs[i]);
		g_free(jobs[i]);
	}
	queue_fini(&q);
}

/* A full queue: the newest job of the longest row makes room, and the owner of that row is
 * refused. */
TEST("/rows/longest-row-makes-room")
{
	struct io_job *jobs[20], *close = g_new0(struct io_job, 1);
	struct io_device_status st;
	int i, n = 0;

	queue_init(&q, 1, 10, 10, 0);
	for (i = 0; i < 10; i++) {
		jobs[i] = push(1, 7, 70 + i);
		g_assert_null(displaced);
	}
	n = 10;
	g_assert_null(push(1, 7, 80)); /* its own row is the longest */
	g_assert_null(displaced);
	close->dev = 1;
	close->turn.client = 7;
	list_init(&close->link);
	g_assert_cmpint(queue_push(&q, close, &displaced), ==, 0);
	g_assert_null(displaced);
	for (i = 0; i < 4; i++) {
		jobs[n++] = push(1, 100 + (uint32_t)i, 1000 + i); /* one each, from four others */
		g_assert_nonnull(jobs[n - 1]);
		g_assert_cmpint(displaced->res, ==, -EAGAIN);
		g_assert_true(displaced->displaced && displaced == jobs[9 - i]);
		g_free(displaced);
	}
	jobs[n++] = push(1, 100, 1100);
	g_assert_true(displaced == jobs[5]);
	g_free(displaced);
	for (i = 0; i < 3; i++) {
		jobs[n++] = push(1, 101, 1200 + i); /* until both have as many */
		g_assert_true((displaced != NULL) == (i < 2));
		g_free(displaced);
		n -= jobs[n - 1] == NULL;
	}
	/* ten that are waited for, and the one that gives something back */
	g_assert_cmpuint(q.waiting, ==, 11);
	g_assert_cmpuint(queue_devices(&q, &st, 0, 1), ==, 1);
	g_assert_cmpuint(st.refused_stuck, ==, 0);
	g_assert_cmpuint(st.refused, ==, 1 + 4 + 1 + 3); /* each time one of the two was */
	put_all_away();
}

/* Each client has one job, none has too many, so the new one is refused. */
TEST("/rows/equals-keep-their-places")
{
	uint32_t i;

	queue_init(&q, 1, 10, 1000, 0);
	for (i = 0; i < 1000; i++)
		g_assert_nonnull(push(1, 1 + i * 2654435761u, 1));
	g_assert_null(push(1, 5, 1));
	g_assert_null(displaced);
	put_all_away();
}

/* A job that a second client wants does not wait for all others of the first. */
TEST("/rows/joined-job")
{
	struct io_job *a[5], *b, *j;
	int i;

	queue_init(&q, 1, 1, 100, 0);
	for (i = 0; i < 5; i++)
		a[i] = push(1, 1, 10 + i);
	b = push(1, 2, 20);
	queue_join(&q, a[4], 2);
	queue_join(&q, b, 1); /* it stays: its row is the shorter one */
	queue_join(&q, a[0], 1);
	static const int64_t want[] = { 10, 20, 11, 14, 12, 13 };
	for (i = 0; i < 6; i++) {
		j = queue_take(&q);
		g_assert_cmpint(j->res, ==, want[i]);
		ran(j);
	}
	queue_fini(&q);
}

/* Rows and jobs in any order against a list that is searched: the same next client, victim and
 * counts. */
TEST("/rows/rows-agree-with-a-list")
{
	enum { CLIENTS = 40, PLACES = 6, WAIT = 64 };
	unsigned waits[CLIENTS] = { 0 }, runs[CLIENTS] = { 0 }, longest, fewest, total = 0,
		 running = 0, i, k;
	struct io_job *jobs[PLACES], *j;

	queue_init(&q, PLACES, PLACES, WAIT, 0);
	for (k = 0; k < 20000; k++) {
		uint32_t c = (uint32_t)g_test_rand_int_range(0, g_test_rand_bit() ? CLIENTS : 3);

		if (g_test_rand_int_range(0, 5) != 0) {
			for (longest = i = 0; i < CLIENTS; i++)
				longest = waits[i] > longest ? waits[i] : longest;
			j = push(1, c, c);
			g_assert_true((j != NULL) == (total < WAIT || waits[c] + 1 < longest));
			g_assert_true((displaced != NULL) == (j != NULL && total == WAIT));
			waits[c] += j != NULL;
			total += j != NULL;
			if (displaced != NULL) {
				g_assert_cmpuint(waits[displaced->turn.client], ==, longest);
				waits[displaced->turn.client]--;
				total--;
				g_free(displaced);
			}
		} else if (running < PLACES && (j = queue_take(&q)) != NULL) {
			for (fewest = PLACES, i = 0; i < CLIENTS; i++)
				fewest = waits[i] != 0 && runs[i] < fewest ? runs[i] : fewest;
			g_assert_cmpuint(runs[j->turn.client], ==, fewest);
			waits[j->turn.client]--;
			total--;
			runs[j->turn.client]++;
			jobs[running++] = j;
		} else if (running != 0) {
			i = (unsigned)g_test_rand_int_range(0, (int)running);
			runs[jobs[i]->turn.client]--;
			ran(jobs[i]);
			jobs[i] = jobs[--running];
		}
		g_assert_cmpuint(q.waiting, ==, total);
	}
	while (running > 0)
		ran(jobs[--running]);
	put_all_away();
}
