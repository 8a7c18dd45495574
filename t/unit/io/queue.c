/* t/unit/io/queue.c -- which job goes next: devices in turn, clients in turn, limits kept. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include "io/loop/epoll.h"
#include "t/unit/io/io_test.h"
#include "t/unit/io/queue_test.h"

static unsigned counted;
static uint64_t moved_to;

static void
count_run(struct io_job *j)
{
	j->res = 1;
}

static void
count_finish(struct io_job *j)
{
	counted++;
	io_job_free(j);
}

/* Into the pools; count_finish() tells of its end. */
static void
push_counting(uint64_t dev, void (*run)(struct io_job *), enum io_lane lane)
{
	struct io_job *j = io_job_new(io, NULL, NULL);

	counted = 0;
	j->dev = dev;
	j->run = run;
	j->finish = count_finish;
	j->lane = lane;
	g_assert_cmpint(io_job_push(j), ==, 0);
}

static void
move_run(struct io_job *j)
{
	moved_to = j->dev;
	if (j->dev == 2)
		return;
	j->dev = 2;
	j->moves = true;
}

static int64_t
take(void)
{
	struct io_job *j = queue_take(&q);

	return (j != NULL ? j->res : 0);
}

/* One client's hundred jobs are not before the other's first. */
TEST("/queue/clients-take-turns")
{
	struct io_job *j[6], *running[6];
	int i;

	queue_init(&q, 100, 100, 100, 0);
	for (i = 0; i < 4; i++)
		j[i] = push(1, 7, 70 + i);
	j[4] = push(1, 3, 30);
	j[5] = push(1, 9, 90);
	static const int64_t want[] = { 70, 30, 90, 71, 72, 73 };
	for (i = 0; i < 6; i++) {
		running[i] = queue_take(&q);
		g_assert_cmpint(running[i]->res, ==, want[i]);
	}
	g_assert_null(queue_take(&q));
	for (i = 0; i < 6; i++)
		ran(j[i]);
	queue_fini(&q);
}

TEST("/queue/devices-take-turns")
{
	struct io_job *j[5];
	int i;

	queue_init(&q, 2, 3, 100, 0);
	for (i = 0; i < 3; i++)
		j[i] = push(1, 0, 10 + i);
	j[3] = push(2, 0, 20);
	j[4] = push(3, 0, 30);
	g_assert_cmpint(take(), ==, 10);
	g_assert_cmpint(take(), ==, 20);
	g_assert_cmpint(take(), ==, 30);
	g_assert_cmpint(take(), ==, 0); /* in all: three */
	ran(j[3]);
	g_assert_cmpint(take(), ==, 11);
	ran(j[4]);
	g_assert_cmpint(take(), ==, 0); /* of one device: two */
	ran(j[0]);
	g_assert_cmpint(take(), ==, 12);
	ran(j[1]);
	ran(j[2]);
	queue_fini(&q);
}

TEST("/queue/bounds-are-per-device")
{
	struct io_job *a = NULL, *b, *c, *d, close = { .dev = 1 };
	struct io_device_status st[4];

	queue_init(&q, 1, 10, 2, 0);
	a = push(1, 0, 1);
	b = push(1, 0, 2);
	g_assert_null(push(1, 0, 3));
	c = push(2, 0, 4);
	list_init(&close.link);
	/* no op waits for it: never refused */
	g_assert_cmpint(queue_push(&q, &close, &displaced), ==, 0);
	g_assert_cmpuint(q.waiting, ==, 4);
	g_assert_cmpint(take(), ==, 1);
	g_assert_cmpint(take(), ==, 4);
	g_assert_cmpuint(queue_devices(&q, st, 0, 4), ==, 2);
	g_assert_cmpuint(st[0].minor, ==, 1);
	g_assert_cmpuint(st[0].busy, ==, 1);
	g_assert_cmpuint(st[0].queued, ==, 2);
	g_assert_cmpuint(st[0].refused, ==, 1);
	queue_pull(&q, b);
	g_free(b);
	d = queue_pop_any(&q);
	g_assert_true(d == &close);
	g_assert_null(queue_pop_any(&q));
	ran(a);
	ran(c);
	g_assert_cmpuint(queue_oldest_ns(&q), ==, 0);
	queue_fini(&q);
}

/* A device that has nothing to do is forgotten when there are many; one that has never is. */
/* Puts all away, whether it waits or runs. */
static void
finish(struct io_job **jobs, int n)
{
	for (int i = 0; i < n; i++) {
		if (jobs[i]->waits)
			queue_pull(&q, jobs[i]);
		else
			queue_ran(&q, jobs[i]);
		g_free(jobs[i]);
	}
	queue_fini(&q);
}

/* Four devices hang in all their threads.  A healthy device gets one of the last threads, and only
 * one. */
TEST("/queue/last-places")
{
	struct io_job *jobs[16 + 12 + 1];
	uint64_t dev;
	int n = 0;

	queue_init(&q, 4, 16, 100, 0); /* 10 places, and 6 for devices that have none */
	for (dev = 1; dev <= 4; dev++)
		for (int i = 0; i < 4; i++)
			jobs[n++] = push(dev, 0, (int64_t)(10 * dev));
	while (queue_take(&q) != NULL)
		;
	g_assert_cmpuint(q.running, ==, 10);
	for (dev = 5; dev <= 10; dev++) {
		jobs[n++] = push(dev, 0, (int64_t)(10 * dev));
		jobs[n++] = push(dev, 0, (int64_t)(10 * dev + 1));
		g_assert_true(queue_ready(&q));
		g_assert_cmpint(take(), ==, 10 * dev);
		g_assert_false(queue_ready(&q));
	}
	jobs[n++] = push(11, 0, 110);
	g_assert_cmpint(take(), ==, 0); /* 16 run: none is left */
	finish(jobs, n);
}

/* A device that is alone gets all places. */
TEST("/queue/one-device")
{
	struct io_job *jobs[9];

	queue_init(&q, 8, 8, 100, 0);
	for (int i = 0; i < 9; i++)
		jobs[i] = push(1, 0, i + 1);
	for (int i = 0; i < 8; i++)
		g_assert_cmpint(take(), ==, i + 1);
	g_assert_cmpint(take(), ==, 0);
	finish(jobs, 9);
}

TEST("/queue/devices-come-and-go")
{
	struct io_job *busy, *j;
	uint64_t dev;

	queue_init(&q, 1, 10, 2, 0);
	busy = push(1000, 0, 1);
	g_assert_cmpint(take(), ==, 1);
	for (dev = 1; dev < 500; dev++) {
		j = push(dev, 0, 2);
		g_assert_cmpint(take(), ==, 2);
		ran(j);
	}
	g_assert_cmpuint(q.ndevices, <=, 64);
	j = push(1000, 0, 3);
	g_assert_cmpint(take(), ==, 0); /* still the same, and busy */
	ran(busy);
	g_assert_cmpint(take(), ==, 3);
	ran(j);
	queue_fini(&q);
}

static bool
says_stuck(void)
{
	struct io_device_status st[2];

	g_assert_cmpuint(queue_devices(&q, st, 0, 2), ==, 1);
	return (st[0].stuck);
}

/* If all jobs of a device run for longer than its limit, a new job is refused. */
TEST("/queue/stuck-is-refused")
{
	struct io_device_status st = { 0 };
	struct io_job *a, *b, *c;

	queue_init(&q, 2, 10, 100, 1000);
	a = push(1, 0, 1);
	b = push(1, 0, 2);
	g_assert_cmpint(take(), ==, 1);
	a->start -= 3000 * NS_PER_MS;
	g_assert_cmpint(take(), ==, 2);
	c = push(1, 0, 3); /* the second place may be free soon */
	g_assert_nonnull(c);
	g_assert_false(says_stuck());
	b->start -= 2000 * NS_PER_MS;
	g_assert_true(says_stuck());
	g_assert_null(push(1, 0, 4));
	g_assert_cmpuint(queue_devices(&q, &st, 0, 1), ==, 1);
	g_assert_cmpuint(st.refused, ==, 1);
	g_assert_cmpuint(st.refused_stuck, ==, 1);
	g_assert_cmpint((int64_t)(clock_mono_ns() - queue_oldest_ns(&q)), >=, 0);
	ran(a);
	g_assert_false(says_stuck());
	g_assert_cmpint(take(), ==, 3);
	a = push(1, 0, 5);
	g_assert_nonnull(a);
	ran(b);
	ran(c);
	g_assert_cmpint(take(), ==, 5);
	ran(a);
	queue_fini(&q);
}

/* A thread of one device's jobs is not taken by another that hangs: a new one is started. */
TEST("/pools/hung-device-takes-its-own-threads")
{
	struct io_lane_status lanes[LANES];
	int i;

	loop_up_sharing(NULL, 2, 100);
	for (i = 0; i < 2; i++)
		gate_enter_dev(LANE_STAT, 1);
	push_counting(2, count_run, LANE_STAT);
	while (counted == 0)
		io_run(io);
	g_assert_cmpuint(io_pools_lanes(pools, lanes, LANES), ==, LANES);
	g_assert_cmpstr(lanes[0].name, ==, "stat");
	g_assert_cmpuint(lanes[0].threads, ==, 3);
	g_assert_cmpuint(lanes[0].busy, ==, 2);
	g_assert_cmpuint(lanes[0].oldest_ns, >, 0);
	gate_leave();
	loop_down();
}

/* run() finds out where it belongs: it is done in that device's line, once. */
LOOP_TEST("/pools/a-job-may-move", NULL, 1, 100)
{
	push_counting(1, move_run, LANE_STAT);
	while (counted == 0)
		io_run(io);
	g_assert_cmpuint(counted, ==, 1);
	g_assert_cmpuint(moved_to, ==, 2);
}

/* A queued job can be cancelled.  A running job goes on, for the next request of the same file. */
LOOP_TEST("/pools/waiting-is-withdrawn", NULL, 1, 100)
{
	struct statx stx;
	struct waiter w;
	int root;

	g_assert_cmpint(io_root_open("/", &root), ==, 0);
	wait_init(&w, IO_OPEN, NULL);
	w.op.open.root = root;
	w.op.open.path = "";
	w.op.open.stx = &stx;
	gate_enter(LANE_STAT);
	wait_submit(&w);
	op_withdraw(io, &w.op);
	g_assert_false(w.done);
	g_assert_cmpint(wait_for(&w), ==, -ECANCELED);
	op_withdraw(io, &w.op); /* too late: nothing happens */
	gate_leave();
	io_close_fd(root);
}

/* The pools end while a thread is stuck: when it comes back it puts away what had to wait for its
 * device, here a descriptor that was to be closed. */
TEST("/pools/what-is-left-behind-is-put-away")
{
	struct pollfd p = { .events = POLLIN };
	int fds[2];

	g_assert_cmpint(pipe(fds), ==, 0);
	loop_up(NULL, 1, 100);
	gate_enter_dev(LANE_STAT, 1);
	io_file_close_job(io, fds[1], 1);
	io_free(io);
	io_pools_free(pools, 1);
	g_assert_cmpint(fcntl(fds[1], F_GETFD), >=, 0); /* it still waits */
	g_assert_cmpint(gate_open(), ==, 1);
	p.fd = fds[0];
	g_assert_cmpint(poll(&p, 1, 10000), ==, 1); /* hung up: the other end is closed */
	close(fds[0]);
}

/* ---- results of short jobs go back together */

static sem_t both, ran_both;
static unsigned first_ms;
static bool woken;

/* Ends when the second job waits. */
static void
first_run(struct io_job *j)
{
	uint64_t until = clock_mono_ns() + first_ms * NS_PER_MS;

	sem_wait(&both);
	while (clock_mono_ns() < until)
		;
}

static void
second_run(struct io_job *j)
{
	struct pollfd p = { .fd = loop_of(io)->epfd, .events = POLLIN };

	woken = poll(&p, 1, 0) == 1;
	sem_post(&ran_both);
}

/* The loop is woken for the first of two jobs before the second one has run. */
static bool
wakes_for_each(unsigned ms)
{
	first_ms = ms;
	push_counting(0, first_run, LANE_TLS);
	push_counting(0, second_run, LANE_TLS);
	sem_post(&both);
	sem_wait(&ran_both);
	while (counted < 2)
		io_run(io);
	return (woken);
}

/* One of many pairs is enough: a thread that the kernel stops has a long job. */
LOOP_TEST("/pools/results-of-short-jobs-go-back-together", NULL, 1, 100)
{
	long threads = sysconf(_SC_NPROCESSORS_ONLN) / 2;
	int tries = 1000;

	sem_init(&both, 0, 0);
	sem_init(&ran_both, 0, 0);
	for (threads = MIN(threads, 16); threads > 1; threads--)
		gate_enter(LANE_TLS); /* all but one are elsewhere */
	while (tries > 0 && wakes_for_each(0))
		tries--;
	g_assert_cmpint(tries, >, 0);
	g_assert_true(wakes_for_each(5));
	gate_leave();
}

static sem_t seen;
static bool second_ended;

/* Long: it ends when the result of the first one has come, or after 2 s. */
static void
long_run(struct io_job *j)
{
	uint64_t until = clock_mono_ns() + 2 * NS_PER_S;

	while (sem_trywait(&seen) != 0 && clock_mono_ns() < until)
		sched_yield();
	__atomic_store_n(&second_ended, true, __ATOMIC_RELEASE);
}

LOOP_TEST("/pools/a-held-result-does-not-wait-for-a-long-job", NULL, 1, 100)
{
	long threads = sysconf(_SC_NPROCESSORS_ONLN) / 2;

	sem_init(&both, 0, 0);
	sem_init(&seen, 0, 0);
	second_ended = false;
	for (threads = MIN(threads, 16); threads > 1; threads--)
		gate_enter(LANE_TLS); /* all but one are elsewhere */
	first_ms = 0;
	push_counting(0, first_run, LANE_TLS);
	push_counting(0, long_run, LANE_TLS);
	sem_post(&both);
	while (counted == 0)
		io_run(io);
	g_assert_false(__atomic_load_n(&second_ended, __ATOMIC_ACQUIRE));
	sem_post(&seen);
	while (counted < 2)
		io_run(io);
	g_assert_cmpuint(io->held_jobs, ==, 0);
	gate_leave();
}

/* No threads: the work is done here, the callback still comes later. */
LOOP_TEST("/pools/no-threads-means-here", NULL, 0, 100)
{
	push_counting(0, count_run, LANE_READ);
	g_assert_cmpuint(counted, ==, 0);
	while (counted == 0)
		io_run(io);
}
