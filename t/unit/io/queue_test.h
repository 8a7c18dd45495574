/* t/unit/io/queue_test.h -- one queue without threads: jobs go in by hand, and out as the queue
 * says. */
#ifndef T_UNIT_IO_QUEUE_TEST_H
#define T_UNIT_IO_QUEUE_TEST_H

#include "io/disk/queue.h"
#include "t/unit/test.h"

static struct io_queue q;
static struct io_job *displaced; /* by the last push() */

static void
never(struct io_job *j)
{
	g_assert_not_reached();
}

static struct io_job *
push(uint64_t dev, uint32_t client, int64_t name)
{
	struct io_job *j = g_new0(struct io_job, 1);

	j->dev = dev;
	j->turn.client = client;
	j->res = name;
	j->finish = never;
	list_init(&j->link);
	if (queue_push(&q, j, &displaced) == 0)
		return (j);
	g_free(j);
	return (NULL);
}

static void
ran(struct io_job *j)
{
	queue_ran(&q, j);
	g_free(j);
}

#endif
