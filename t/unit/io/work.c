/* t/unit/io/work.c -- IO_WORK: who has the last reference. */
#include <semaphore.h>
#include <sys/resource.h>
#include "t/unit/io/in_dir.h"

static struct work {
	struct io_work work;
	sem_t begun, go_on, freed;
	int runs, nice;
} work;

static void
work_run(struct io_work *w)
{
	work.runs++;
	work.nice = getpriority(PRIO_PROCESS, 0);
	sem_post(&work.begun);
	while (sem_wait(&work.go_on) != 0)
		;
}

static void
work_free(struct io_work *w)
{
	sem_post(&work.freed);
}

static bool
is_freed(void)
{
	return (sem_trywait(&work.freed) == 0);
}

static void
begin(struct waiter *w)
{
	work.work = (struct io_work){ .run = work_run, .free = work_free, .refs = 1 };
	work.runs = 0;
	sem_init(&work.begun, 0, 0);
	sem_init(&work.go_on, 0, 0);
	sem_init(&work.freed, 0, 0);
	loop_up(NULL, 1, 64);
	wait_init(w, IO_WORK, NULL);
	w->op.work.work = &work.work;
	wait_submit(w);
}

static void
wait_begun(void)
{
	while (sem_wait(&work.begun) != 0)
		;
}

static void
cancel(struct waiter *w)
{
	op_cancel(io, &w->op);
	g_assert_cmpint(wait_for(w), ==, -ECANCELED);
	io_work_put(&work.work);
}

TEST("/work/done")
{
	struct waiter w;

	begin(&w);
	sem_post(&work.go_on);
	g_assert_cmpint(wait_for(&w), ==, 0);
	g_assert_cmpint(work.runs, ==, 1);
	g_assert_false(is_freed());
	io_work_put(&work.work);
	g_assert_true(is_freed());
	loop_down();
}

/* So a loop that wakes up runs at once. */
TEST("/work/nice")
{
	int own = getpriority(PRIO_PROCESS, 0);
	struct waiter w;

	begin(&w);
	sem_post(&work.go_on);
	g_assert_cmpint(wait_for(&w), ==, 0);
	g_assert_cmpint(work.nice, ==, MIN(own + 10, 19));
	g_assert_cmpint(getpriority(PRIO_PROCESS, 0), ==, own);
	io_work_put(&work.work);
	loop_down();
}

static void *
nice_computes(void *arg)
{
	struct waiter w;

	g_assert_cmpint(setpriority(PRIO_PROCESS, 0, *(int *)arg + 10), ==, 0);
	begin(&w);
	sem_post(&work.go_on);
	g_assert_cmpint(wait_for(&w), ==, 0);
	io_work_put(&work.work);
	loop_down();
	return (NULL);
}

/* A thread that computes starts the next one. */
TEST("/work/nice-once")
{
	int own = getpriority(PRIO_PROCESS, 0);
	pthread_t thread;

	g_assert_cmpint(pthread_create(&thread, NULL, nice_computes, &own), ==, 0);
	pthread_join(thread, NULL);
	g_assert_cmpint(work.nice, ==, MIN(own + 10, 19));
}

/* The op ends first, then the computation, then the loop. */
TEST("/work/cancelled")
{
	struct waiter w;

	begin(&w);
	wait_begun();
	cancel(&w);
	g_assert_false(is_freed());
	sem_post(&work.go_on);
	while (!is_freed())
		run_ms(1);
	loop_down();
}

/* The loop ends before the computation: a server that stops at once. */
TEST("/work/loop-is-gone")
{
	struct waiter w;

	begin(&w);
	wait_begun();
	cancel(&w);
	io_free(io);
	g_assert_false(is_freed());
	sem_post(&work.go_on);
	io_pools_free(pools, 60000);
	g_assert_true(is_freed());
}
