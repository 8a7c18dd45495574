#include "fcgi-stat-accel/work.h"

#include <errno.h>
#include <fcgiapp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define NO_LISTENER (-1)		/* accept() fails at once, so FCGX_Accept_r cannot wait */
#define REPLY_CHUNK 16384

struct jobs {
	struct job *first, **end;
};

struct hand {				/* one thread */
	struct work *work;
	pthread_t    thread;
	FCGX_Request request;
	int	     far;		/* our end of the pair; libfcgi has the other one */
	GString	    *path, *reply;	/* kept between requests */
};

struct work {
	const struct work_conf *conf;
	struct hand *hands;
	unsigned     started;
	int	     event;

	pthread_mutex_t lock;		/* of all below */
	pthread_cond_t	more;
	struct jobs	todo, done;
	bool		stop;
};

static void
jobs_init(struct jobs *l)
{
	l->first = NULL;
	l->end = &l->first;
}

static void
jobs_append(struct jobs *l, struct job *j)
{
	j->next = NULL;
	*l->end = j;
	l->end = &j->next;
}

static struct job *
jobs_shift(struct jobs *l)
{
	struct job *j = l->first;

	l->first = j->next;
	if (l->first == NULL)
		l->end = &l->first;
	return (j);
}

/* ---------------------------------------------------------------- libfcgi */

static bool
pair_open(struct hand *h)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
		return (false);
	FCGX_InitRequest(&h->request, NO_LISTENER, 0);
	h->request.ipcFd = fd[0];
	h->request.keepConnection = 1;	/* or the first FCGX_Accept_r would close it */
	h->far = fd[1];
	return (true);
}

static void
pair_close(struct hand *h)
{
	if (h->far >= 0)
		close(h->far);
	h->far = -1;
	FCGX_Free(&h->request, 1);
}

/* Non-blocking, for the reader comes only after us.  64 KiB fit; where they do not, the system
 * has been told to keep sockets small, and such a request gets no answer. */
static bool
hand_in(struct hand *h, const GString *bytes)
{
	ssize_t n = send(h->far, bytes->str, bytes->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	return (n == (ssize_t)bytes->len);
}

/* All of it is there: libfcgi has written its END_REQUEST.  So a short receive is the last one. */
static void
take_out(struct hand *h, GString *bytes)
{
	char buf[REPLY_CHUNK];
	ssize_t n;

	do {
		n = recv(h->far, buf, sizeof(buf), MSG_DONTWAIT);
		g_string_append_len(bytes, buf, MAX(n, 0));
	} while (n == sizeof(buf));
}

static void
answer_request(struct hand *h)
{
	const struct work_conf *conf = h->work->conf;
	char **params = h->request.envp;
	struct warm_found found = { 0 };
	uint64_t from;

	found.err = accel_path(conf->accel, params, h->path, &from);
	if (found.err == 0)
		found.err = touch_file(conf->touch, h->path->str);
	g_string_truncate(h->reply, 0);
	accel_reply(conf->accel, params, h->path->str, &found, conf->stats, h->reply);
	FCGX_PutStr(h->reply->str, (int)h->reply->len, h->request.out);
}

/* False when libfcgi did not take it: then the pair may hold half a request and must go. */
static bool
through_libfcgi(struct hand *h, const GString *bytes)
{
	if (h->far < 0 && !pair_open(h))
		return (false);
	if (!hand_in(h, bytes) || FCGX_Accept_r(&h->request) != 0)
		return (false);
	answer_request(h);
	FCGX_Finish_r(&h->request);
	return (h->request.ipcFd >= 0);
}

static void
answer(struct hand *h, struct job *j)
{
	bool good = through_libfcgi(h, j->bytes);

	g_string_truncate(j->bytes, 0);
	if (good)
		take_out(h, j->bytes);
	else
		pair_close(h);
}

/* ---------------------------------------------------------------- threads */

/* NULL when it is time to end. */
static struct job *
next_job(struct work *w)
{
	struct job *j = NULL;

	pthread_mutex_lock(&w->lock);
	while (w->todo.first == NULL && !w->stop)
		pthread_cond_wait(&w->more, &w->lock);
	if (w->todo.first != NULL)
		j = jobs_shift(&w->todo);
	pthread_mutex_unlock(&w->lock);
	return (j);
}

/* One wake-up for all that are done until somebody looks. */
static void
give_back(struct work *w, struct job *j)
{
	const uint64_t one = 1;
	bool first;

	pthread_mutex_lock(&w->lock);
	first = w->done.first == NULL;
	jobs_append(&w->done, j);
	pthread_mutex_unlock(&w->lock);
	if (first && write(w->event, &one, sizeof(one)) < 0)
		g_error("eventfd: %s", g_strerror(errno));	/* cannot happen */
}

static void *
hand_run(void *arg)
{
	struct hand *h = arg;
	char name[16];
	struct job *j;

	g_snprintf(name, sizeof(name), "touch-%u", (unsigned)(h - h->work->hands));
	pthread_setname_np(pthread_self(), name);
	while ((j = next_job(h->work)) != NULL) {
		answer(h, j);
		give_back(h->work, j);
	}
	return (NULL);
}

static int
hand_start(struct work *w, struct hand *h)
{
	h->work = w;
	h->path = g_string_new(NULL);
	h->reply = g_string_new(NULL);
	h->far = -1;
	FCGX_InitRequest(&h->request, NO_LISTENER, 0);
	if (!pair_open(h))
		return (-errno);
	return (-pthread_create(&h->thread, NULL, hand_run, h));
}

static void
hand_free(struct hand *h)
{
	if (h->path == NULL)
		return;			/* never started */
	pair_close(h);
	g_string_free(h->path, TRUE);
	g_string_free(h->reply, TRUE);
}

int
work_start(const struct work_conf *conf, struct work **wp)
{
	struct work *w = g_new0(struct work, 1);
	int err = 0;

	w->conf = conf;
	w->hands = g_new0(struct hand, conf->threads);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	jobs_init(&w->todo);
	jobs_init(&w->done);
	w->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->event < 0 || FCGX_Init() != 0)
		err = -errno;
	while (err == 0 && w->started < conf->threads) {
		err = hand_start(w, &w->hands[w->started]);
		if (err == 0)
			w->started++;
	}
	if (err != 0)
		work_stop(&w);
	*wp = w;
	return (err);
}

void
work_stop(struct work **wp)
{
	struct work *w = *wp;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->more);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->started; i++)
		pthread_join(w->hands[i].thread, NULL);
	for (unsigned i = 0; i < w->conf->threads; i++)
		hand_free(&w->hands[i]);
	if (w->event >= 0)
		close(w->event);
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
	g_free(w->hands);
	g_free(w);
	*wp = NULL;
}

/* ---------------------------------------------------------------- jobs */

void
work_submit(struct work *w, struct job *j)
{
	pthread_mutex_lock(&w->lock);
	jobs_append(&w->todo, j);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
}

int
work_fd(const struct work *w)
{
	return (w->event);
}

struct job *
work_done(struct work *w)
{
	struct job *j;
	uint64_t n;

	if (read(w->event, &n, sizeof(n)) < 0 && errno != EAGAIN)
		g_error("eventfd: %s", g_strerror(errno));	/* cannot happen */
	pthread_mutex_lock(&w->lock);
	j = w->done.first;
	jobs_init(&w->done);
	pthread_mutex_unlock(&w->lock);
	return (j);
}
