#include "walk/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/urlpath.h"
#include "walk/lines.h"
#include "walk/report.h"
#include "walk/walker.h"

#define CHUNK (64 * 1024)
/* With a state file batches must be the same in each run, so they always end at this number. */
#define BATCH_MAX 256

struct walk_list {
	struct walk_shared shared; /* conf, queue and state of it */
	struct walk_counters counters;
	struct walk_dir *dir; /* relative paths begin here */
	struct walk_batch *batch;
	int fd;
	uint64_t size, done; /* size of a regular file; bytes read so far */
	struct lines lines;  /* entries */
	GString *path;
	GChecksum *sum; /* see walker.h */
	pthread_t thread;
};

/* ---------------------------------------------------------------- entries */

static struct text
without_host(struct text t)
{
	const char *colon = memmem(t.p, t.n, "://", 3), *path;
	size_t host;

	if (colon == NULL)
		return (t);
	host = (size_t)(colon + 3 - t.p);
	path = memchr(t.p + host, '/', t.n - host);
	return (path != NULL ? (struct text){ path, t.n - (size_t)(path - t.p) } : TEXT("/"));
}

static struct text
without_query(struct text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (t.p[i] == '?' || t.p[i] == '#')
			return ((struct text){ t.p, i });
	return (t);
}

static int
url_entry(struct text t, GString *path)
{
	int n;

	t = without_query(without_host(text_trim(t)));
	g_string_set_size(path, t.n);
	n = urlpath_clean(t, path->str);
	g_string_set_size(path, n < 0 ? 0 : (gsize)n);
	return (n < 0 ? -EINVAL : 0);
}

int
walk_list_entry(const struct walk_conf *conf, const char *entry, size_t n, GString *path)
{
	gsize slashes;

	g_string_truncate(path, 0);
	if (n > 0 && conf->urls && entry[n - 1] == '\r')
		n--;
	if (n == 0)
		return (-ENOENT);
	if (n >= PATH_MAX || memchr(entry, '\0', n) != NULL)
		return (-EINVAL);
	if (conf->urls) {
		if (url_entry((struct text){ entry, n }, path) != 0)
			return (-EINVAL);
	} else
		g_string_append_len(path, entry, (gssize)n);
	if (conf->below == NULL)
		return (0);
	slashes = strspn(path->str, "/");
	g_string_erase(path, 0, (gssize)slashes);
	if (path->len == 0)
		g_string_append_c(path, '.');
	return (0);
}

/* ---------------------------------------------------------------- reading */

static void
flush(struct walk_list *l)
{
	if (l->batch != NULL)
		walker_add_batch(&l->shared, &l->counters, l->sum, &l->batch);
	walk_queue_wait_room(l->shared.queue);
}

static void
refuse(struct walk_list *l, const char *entry, size_t n)
{
	char *text = g_strndup(entry, MIN(n, 200));

	count_add(&l->counters, errors, 1);
	walk_report_failure(l->dir, text, "not a path");
	g_free(text);
}

static void
entry(struct walk_list *l, const char *p, size_t n)
{
	int err = walk_list_entry(l->shared.conf, p, n, l->path);

	if (err == -EINVAL)
		refuse(l, p, n);
	if (err != 0)
		return;
	if (l->shared.conf->shard != NULL &&
	    !walk_shard_has(l->shared.conf->shard, (struct text){ l->path->str, l->path->len })) {
		count_add(&l->counters, excluded, 1);
		return;
	}
	if (l->batch == NULL) {
		l->batch = walk_batch_new(l->dir);
		l->batch->listed = true;
	}
	walk_batch_add(l->batch, l->path->str, 0, DT_UNKNOWN);
	if (l->batch->n == BATCH_MAX)
		flush(l);
}

static void
take_entries(struct walk_list *l)
{
	enum line_kind kind;
	struct text t;

	while ((kind = lines_next(&l->lines, &t)) != LINE_NONE)
		(kind == LINE_WHOLE ? entry : refuse)(l, t.p, t.n);
}

/* No more bytes are readable now, so the batch is not held back. */
static bool
would_wait(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return (poll(&p, 1, 0) == 0);
}

static ssize_t
read_some(struct walk_list *l)
{
	char buf[CHUNK];
	ssize_t n = TEMP_FAILURE_RETRY(read(l->fd, buf, sizeof(buf)));

	if (n < 0) {
		count_add(&l->counters, errors, 1);
		walk_message("%s: %s", l->shared.conf->list, strerrordesc_np(errno));
	}
	if (n > 0) {
		lines_add(&l->lines, buf, (size_t)n);
		__atomic_store_n(&l->done, l->done + (uint64_t)n, __ATOMIC_RELAXED);
	}
	return (n);
}

static void *
list_main(void *arg)
{
	struct walk_list *l = arg;
	struct text last;

	while (read_some(l) > 0) {
		take_entries(l);
		if (l->shared.state == NULL && would_wait(l->fd))
			flush(l);
	}
	if (lines_last(&l->lines, &last))
		entry(l, last.p, last.n);
	flush(l);
	walk_dir_unuse(l->dir);
	walk_queue_done(l->shared.queue, true);
	return (NULL);
}

/* ---------------------------------------------------------------- start and end */

static int
open_list(const char *name, uint64_t *size)
{
	int fd = strcmp(name, "-") == 0 ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		*size = (uint64_t)st.st_size;
	return (fd < 0 ? -errno : fd);
}

int
walk_list_start(const struct walk_conf *conf, struct walk_queue *queue, struct walk_state *state,
    struct walk_list **lp, const char **bad)
{
	struct walk_list *l;
	uint64_t size = 0;
	int fd, at = AT_FDCWD, err;

	*bad = conf->list;
	fd = open_list(conf->list, &size);
	if (fd < 0)
		return (fd);
	if (conf->below != NULL && (at = open(conf->below, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		*bad = conf->below;
		return (-errno);
	}
	l = g_new0(struct walk_list, 1);
	l->shared = (struct walk_shared){ .conf = conf, .queue = queue, .state = state };
	l->fd = fd;
	l->size = size;
	l->dir = walk_dir_new(NULL, conf->below != NULL ? conf->below : "");
	walk_dir_opened(l->dir, at, 0);
	lines_init(&l->lines, conf->nul ? '\0' : '\n', CHUNK);
	l->path = g_string_new(NULL);
	l->sum = state != NULL ? g_checksum_new(G_CHECKSUM_SHA256) : NULL;
	walk_queue_hold(queue);
	*bad = "a thread for the list";
	err = pthread_create(&l->thread, NULL, list_main, l);
	*lp = l;
	return (-err);
}

void
walk_list_counters(const struct walk_list *l, struct walk_counters *sum)
{
	walk_counters_add(sum, &l->counters);
}

double
walk_list_part(const struct walk_list *l)
{
	return (l->size > 0 ? (double)__atomic_load_n(&l->done, __ATOMIC_RELAXED) / (double)l->size
			    : 0);
}

void
walk_list_join(struct walk_list **lp)
{
	struct walk_list *l = *lp;

	pthread_join(l->thread, NULL);
	walk_dir_unref(&l->dir);
	lines_free(&l->lines);
	g_string_free(l->path, TRUE);
	g_clear_pointer(&l->sum, g_checksum_free);
	if (l->fd != STDIN_FILENO)
		close(l->fd);
	g_free(l);
	*lp = NULL;
}
