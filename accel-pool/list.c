/* accel-pool/list.c -- accel-pool list: URLs of the files of a tree, or of an access log.
 *
 *	tree --> walk, many threads --> sizes --.
 *	log  --> lines, in their order ----------+--> encoded --> once each? --> order --> output
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "accel-pool/log_line.h"
#include "accel-pool/marker.h"
#include "accel-pool/options.h"
#include "accel-pool/urls.h"
#include "walk/lines.h"
#include "walk/report.h"
#include "walk/run.h"
#include "walk/walker.h"
#include "wire/urlpath.h"

#define CHUNK (64 * 1024) /* a longer line does not come from an access log */

struct listing {
	const struct pool_conf *conf;
	pthread_mutex_t lock; /* of urls */
	struct urls urls;
	struct buf url; /* of a log: the current one */
	uint64_t lines, others, bad;
	int err;
};

static enum urls_order
order_of(const struct pool_conf *conf)
{
	return (conf->shuffle       ? URLS_SHUFFLED
		: conf->log != NULL ? URLS_AS_THEY_COME
				    : URLS_SORTED);
}

static void
put_escaped(struct buf *out, struct text t, unsigned keep)
{
	char *p = buf_extend(out, 3 * t.n);

	if (p != NULL)
		out->n -= 3 * t.n - urlpath_escape(t, keep, p);
}

/* ---------------------------------------------------------------- a tree */

static bool
has_size(const struct pool_conf *conf, int dir, const char *name)
{
	struct stat st;

	if (conf->min == 0 && conf->max == 0)
		return (true); /* the directory has shown that it is a file */
	return (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(uint64_t)st.st_size >= conf->min &&
		(conf->max == 0 || (uint64_t)st.st_size <= conf->max));
}

static int
visit(struct walker *w, const struct walk_batch *b, const char *name, bool follow)
{
	struct listing *l = w->shared->conf->own;
	struct buf path, url;

	walker_enter(w, b->dir, name, b->dir->dev);
	if (strcmp(name, MARKER) != 0 && has_size(l->conf, b->dir->fd, name)) {
		buf_init(&path, 0);
		buf_init(&url, 0);
		walk_dir_path_below(b->dir, name, &path);
		buf_str(&url, l->conf->prefix);
		put_escaped(&url, (struct text){ path.p, path.n - 1 }, URL_OF_DECODED);
		buf_char(&url, '\0');
		pthread_mutex_lock(&l->lock);
		urls_add(&l->urls, url.p, url.n - 1);
		pthread_mutex_unlock(&l->lock);
		buf_free(&url);
		buf_free(&path);
	}
	walker_leave(w);
	return (0);
}

static int
finish(struct listing *l)
{
	l->err = urls_end(&l->urls);
	if (l->err != 0)
		walk_message("standard output: %s", g_strerror(-l->err));
	return (l->err != 0 ? EX_IOERR : 0);
}

/* The list is the result: there is no summary. */
static void
tree_done(const struct walk_conf *conf, const struct walk_progress *p, bool interrupted, GString *s)
{
	walk_status_line(NULL);
	if (!interrupted)
		finish(conf->own);
}

static int
list_tree(struct listing *l, struct pool_conf *conf)
{
	int code;

	conf->walk.visit = visit;
	conf->walk.summary = tree_done;
	conf->walk.own = l;
	code = walk_run(&conf->walk);
	if (l->err != 0)
		return (EX_IOERR);
	if (code == 0 && l->urls.printed == 0) {
		walk_message("found no file that could be listed");
		return (EX_NOINPUT);
	}
	return (code);
}

/* ---------------------------------------------------------------- a log */

static bool
is_wanted(const struct listing *l, const struct log_request *r)
{
	char status[16];

	g_snprintf(status, sizeof(status), "%u", r->status);
	return (text_eq(r->method, TEXT("GET")) && l->conf->status != NULL &&
		g_strv_contains(l->conf->status, status));
}

/* Adds the path of the line, if it is wanted.  False: the limit of the list is reached. */
static bool
add_line(struct listing *l, struct text line)
{
	struct log_request r;
	struct text path;
	char *buf = g_malloc(line.n + 1);
	bool more = true;

	l->lines++;
	if (!log_line_parse(line, buf, &r))
		l->bad += text_trim_cr(line).n > 0;
	else if (!is_wanted(l, &r) || !log_target_path(r.target, &path))
		l->others++;
	else {
		l->url.n = 0;
		put_escaped(&l->url, path, URL_OF_TARGET);
		buf_char(&l->url, '\0');
		more = urls_add(&l->urls, l->url.p, l->url.n - 1);
	}
	g_free(buf);
	return (more);
}

static int
read_log(struct listing *l, int fd)
{
	char chunk[CHUNK];
	struct lines lines;
	enum line_kind kind;
	struct text t;
	bool more = true;
	ssize_t n = 0;

	lines_init(&lines, '\n', CHUNK);
	while (more && (n = TEMP_FAILURE_RETRY(read(fd, chunk, sizeof(chunk)))) > 0) {
		lines_add(&lines, chunk, (size_t)n);
		while (more && (kind = lines_next(&lines, &t)) != LINE_NONE)
			if (kind == LINE_WHOLE)
				more = add_line(l, t);
			else {
				l->lines++;
				l->bad++;
			}
	}
	if (more && lines_last(&lines, &t))
		add_line(l, t);
	lines_free(&lines);
	return (n < 0 ? -errno : 0);
}

static void
tell(const struct listing *l)
{
	if (l->conf->walk.quiet)
		return;
	walk_message("%" PRIu64 " URLs of %" PRIu64 " lines; %" PRIu64 " other requests, %" PRIu64
		     " too long, %" PRIu64 " lines that are not of an access log",
	    l->urls.printed, l->lines, l->others, l->urls.too_long, l->bad);
}

static int
list_log(struct listing *l, const char *name)
{
	int fd = strcmp(name, "-") == 0 ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0) {
		walk_message("%s: %s", name, g_strerror(errno));
		return (EX_NOINPUT);
	}
	buf_init(&l->url, 0);
	err = read_log(l, fd);
	buf_free(&l->url);
	if (fd != STDIN_FILENO)
		close(fd);
	if (err != 0)
		walk_message("%s: %s", name, g_strerror(-err));
	if (finish(l) != 0 || err != 0)
		return (EX_IOERR);
	tell(l);
	return (l->urls.printed > 0 ? 0 : EX_DATAERR);
}

int
pool_list(struct pool_conf *conf)
{
	struct listing l = { .conf = conf };
	const struct urls_conf how = { order_of(conf), conf->base, conf->unique,
		conf->seed != 0 ? conf->seed : 1, conf->limit, stdout };
	int code;

	urls_init(&l.urls, &how);
	pthread_mutex_init(&l.lock, NULL);
	code = conf->log != NULL ? list_log(&l, conf->log) : list_tree(&l, conf);
	pthread_mutex_destroy(&l.lock);
	urls_free(&l.urls);
	return (code);
}
