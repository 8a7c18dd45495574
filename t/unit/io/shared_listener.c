/* t/unit/io/shared_listener.c -- two loops listen on one socket, and the one that accepts no more
 * leaves connections to the other.
 *
 * The kernel wakes one sleeping loop for a connection, the one that was registered first. */
#include <sys/epoll.h>
#include <sys/syscall.h>
#include "io/start/listen.h"
#include "t/unit/io/io_test.h"

#define PATIENCE_S 60

struct sharer { /* a loop and its accept */
	struct io *io;
	struct io_sock listener;
	struct waiter accept;
	pthread_t thread;
	pid_t tid;
	bool end;
};

static struct io *
loop_new(void)
{
	struct io_conf conf = { .backend = file_backends[0], .pools = pools };
	int err = 0;
	struct io *made = io_new(&conf, &err);

	g_assert_nonnull(made);
	return (made);
}

static void
round_of(struct sharer *s)
{
	io_wake(s->io);
	io_run(s->io);
}

static void
sharer_up(struct sharer *s, int fd)
{
	*s = (struct sharer){ .io = loop_new() };
	io_sock_init(&s->listener, fd);
	wait_init(&s->accept, IO_ACCEPT, &s->listener);
	op_submit(s->io, &s->accept.op);
	round_of(s);
	g_assert_false(s->accept.done);
	g_assert_cmpint(s->listener.hints & SOCK_REGISTERED, !=, 0);
}

static void
sharer_down(struct sharer *s)
{
	if (io_busy(s->io)) {
		op_cancel(s->io, &s->accept.op);
		round_of(s);
	}
	g_assert_false(io_busy(s->io));
	io_free(s->io);
}

static void *
run(void *arg)
{
	struct sharer *s = arg;

	__atomic_store_n(&s->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&s->end, __ATOMIC_ACQUIRE) && !s->accept.done)
		io_run(s->io);
	return (NULL);
}

/* Returns once the thread of the loop waits for events. */
static void
until_asleep(struct sharer *s)
{
	pid_t tid;
	char *path, *stat, state = 0;

	while ((tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE)) == 0)
		g_usleep(1000);
	path = g_strdup_printf("/proc/self/task/%d/stat", tid);
	while (state != 'S') {
		g_usleep(1000);
		g_assert_true(g_file_get_contents(path, &stat, NULL, NULL));
		state = strrchr(stat, ')')[2];
		g_free(stat);
	}
	g_free(path);
}

static int
connect_to(int listener)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	g_assert_cmpint(getsockname(listener, (struct sockaddr *)&in, &len), ==, 0);
	g_assert_cmpint(connect(fd, (struct sockaddr *)&in, len), ==, 0);
	return (fd);
}

static void
stop(struct sharer *s)
{
	__atomic_store_n(&s->end, true, __ATOMIC_RELEASE);
	io_wake(s->io);
	pthread_join(s->thread, NULL);
}

static int
open_listener(void)
{
	struct listen_conf lc = { .name = "127.0.0.1:0", .backlog = 100 };
	const char *why;
	int fd;

	g_assert_cmpint(io_pools_new(&(struct io_pools_conf){ .stat_threads = 1,
					 .read_threads = 1,
					 .per_device = 1,
					 .max_queue = 8 },
			    &pools),
	    ==, 0);
	g_assert_cmpint(listen_open(&lc, &fd, &why), ==, 0);
	return (fd);
}

TEST("/shared-listener/leaves-it-to-the-other")
{
	struct sharer full, other;
	int fd = open_listener(), client[2];

	alarm(PATIENCE_S); /* without the answer the last join waits for ever */
	sharer_up(&full, fd);
	sharer_up(&other, fd);
	client[0] = connect_to(fd);
	round_of(&full);
	g_assert_true(full.accept.done);
	close((int)full.accept.res);
	round_of(&other); /* finds the queue empty, and listens on */
	g_assert_false(other.accept.done);

	io_sock_ignore(full.io, &full.listener);
	full.accept.done = false;
	pthread_create(&full.thread, NULL, run, &full);
	pthread_create(&other.thread, NULL, run, &other);
	until_asleep(&full);
	until_asleep(&other);
	client[1] = connect_to(fd);
	pthread_join(other.thread, NULL);
	g_assert_cmpint(other.accept.res, >=, 0);
	stop(&full);

	/* The loop listens again with its next accept. */
	op_submit(full.io, &full.accept.op);
	round_of(&full);
	g_assert_cmpint(full.listener.hints & SOCK_REGISTERED, !=, 0);
	close((int)other.accept.res);
	sharer_down(&other);
	sharer_down(&full);
	close(client[0]);
	close(client[1]);
	io_close_fd(fd);
	io_pools_free(pools, 5000);
	alarm(0);
}

/* The accept of this sharer is cancelled when its loop has its events and has not looked at them
 * yet. */
static struct sharer *drains;

int
epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout)
{
	int n = (int)syscall(SYS_epoll_pwait, epfd, ev, max, timeout, NULL, 0);

	if (n > 0 && drains != NULL && pthread_equal(pthread_self(), drains->thread))
		op_cancel(drains->io, &drains->accept.op);
	return (n);
}

/* The loop that accepts no more was the only one the kernel woke for a connection. */
TEST("/shared-listener/passes-nobody-over")
{
	struct sharer first, other;
	int fd = open_listener(), client;

	alarm(PATIENCE_S);
	sharer_up(&first, fd);
	sharer_up(&other, fd);
	drains = &first;
	pthread_create(&first.thread, NULL, run, &first);
	until_asleep(&first);
	client = connect_to(fd);
	pthread_join(first.thread, NULL);
	drains = NULL;
	g_assert_true(first.accept.done);
	g_assert_cmpint(first.accept.res, >=, 0);
	g_assert_cmpint(first.listener.hints & SOCK_REGISTERED, ==, 0);
	close((int)first.accept.res);
	/* Nothing has come: a cancelled accept ends without a connection. */
	op_cancel(other.io, &other.accept.op);
	round_of(&other);
	g_assert_cmpint(other.accept.res, ==, -ECANCELED);
	sharer_down(&first);
	sharer_down(&other);
	close(client);
	io_close_fd(fd);
	io_pools_free(pools, 5000);
	alarm(0);
}
