/* nginx/threads.c -- a question is answered by a thread of nginx, which opens the file and reads
 * it. */
#include "nginx/stat_accel.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (128 * 1024)

/* ---------------------------------------------------------------- in a thread */

static void
read_range(int fd, const struct accel_question *q, off_t size)
{
	static __thread char buffer[CHUNK];
	off_t at = q->name.range.from, end;
	ssize_t n;

	if (at < 0)
		at = ngx_max(size + at, 0);
	end = ngx_min(ngx_min(q->name.range.to, size), at + (off_t)q->warm);
	while (at < end) {
		n = pread(fd, buffer, (size_t)ngx_min((off_t)CHUNK, end - at), at);
		if (n <= 0)
			return;
		at += n;
	}
}

/* Looks up what a listing shows.  Closes fd. */
static void
read_directory(int fd)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	struct stat st;

	if (dir == NULL) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		fstatat(fd, entry->d_name, &st, 0);
	closedir(dir);
}

static enum accel_kind
read_file(struct accel_question *q)
{
	int fd = open((char *)q->name.path.data, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 || fstat(fd, &q->st) != 0) {
		q->err = errno;
		if (fd >= 0)
			close(fd);
		return (ACCEL_ABSENT);
	}
	if (S_ISDIR(q->st.st_mode) && q->name.list) {
		read_directory(fd);
		return (ACCEL_DIR);
	}
	if (S_ISREG(q->st.st_mode))
		read_range(fd, q, q->st.st_size);
	if (q->name.open)
		q->fd = fd;
	else
		close(fd);
	return (S_ISDIR(q->st.st_mode) ? ACCEL_DIR : ACCEL_FILE);
}

static void
work(void *data, ngx_log_t *log)
{
	struct accel_question *q = *(struct accel_question **)data;

	(void)log;
	q->kind = read_file(q);
	q->hot = !q->name.list && !q->name.open;
}

static void
close_one(void *data, ngx_log_t *log)
{
	(void)log;
	close(*(int *)data);
}

/* ---------------------------------------------------------------- in the event loop */

static void
closed(ngx_event_t *ev)
{
	ngx_free(ev->data);
}

static void
done(ngx_event_t *ev)
{
	ngx_thread_task_t *task = ev->data;
	struct accel_question *q = *(struct accel_question **)task->ctx;

	ngx_free(task);
	accel_question_end(q, q->kind);
}

ngx_int_t
accel_threads_ask(ngx_thread_pool_t *pool, struct accel_question *q)
{
	ngx_thread_task_t *task = ngx_calloc(sizeof(*task) + sizeof(q), ngx_cycle->log);

	if (task == NULL)
		return (NGX_ERROR);
	task->ctx = task + 1;
	*(struct accel_question **)task->ctx = q;
	task->handler = work;
	task->event.data = task;
	task->event.handler = done;
	if (ngx_thread_task_post(pool, task) == NGX_OK)
		return (NGX_OK);
	ngx_free(task);
	return (NGX_ERROR);
}

void
accel_threads_close(ngx_thread_pool_t *pool, int fd)
{
	ngx_thread_task_t *task = ngx_calloc(sizeof(*task) + sizeof(fd), ngx_cycle->log);

	if (task == NULL) {
		close(fd);
		return;
	}
	task->ctx = task + 1;
	*(int *)task->ctx = fd;
	task->handler = close_one;
	task->event.data = task;
	task->event.handler = closed;
	if (ngx_thread_task_post(pool, task) == NGX_OK)
		return;
	ngx_free(task);
	close(fd);
}
