#include "walk/state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "walk/batch.h"

#define MAGIC    "accel-warm state "
#define KEY_LINE (WALK_KEY_CHARS + 1)

static const char in_use[] = "another run is using it", not_ours[] = "this is not a state file";

struct walk_state {
	char *path;
	int fd;
	off_t end;            /* where its last whole line ends */
	GHashTable *keys;     /* of earlier runs; does not change */
	GString *unsaved;     /* belongs to the thread that saves */
	pthread_mutex_t lock; /* of noted */
	GString *noted;
};

/* ---------------------------------------------------------------- text */

static void
line(GString *s, const char *name, const char *value)
{
	char *escaped = g_strescape(value, NULL);

	g_string_append_printf(s, "%s=%s\n", name, escaped);
	g_free(escaped);
}

static void
lines(GString *s, const char *name, const char *const *values)
{
	for (; values != NULL && *values != NULL; values++)
		line(s, name, *values);
}

static void
path_line(GString *s, const char *name, const char *path, const char *cwd)
{
	char *whole = g_canonicalize_filename(path, cwd);

	line(s, name, whole);
	g_free(whole);
}

static void
warm_line(GString *s, const struct walk_conf *conf)
{
	if (conf->how == WARM_READ && conf->before != WARM_ALL)
		g_string_append_printf(s, "warm=read:%" G_GUINT64_FORMAT "\n", conf->before);
	else
		line(s, "warm",
		    conf->how == WARM_STAT   ? "stat"
		    : conf->how == WARM_OPEN ? "open"
					     : "read:all");
}

static void
share_lines(GString *s, const struct walk_shard_conf *c)
{
	if (c->shard == NULL)
		return;
	line(s, "shard", c->shard);
	lines(s, "node", c->nodes);
	g_string_append_printf(s, "balance=%d.%u.%u\n", c->balance, c->hash, c->weight);
	line(s, "host", c->host != NULL ? c->host : "");
	line(s, "prefix", c->prefix);
}

void
walk_state_head(const struct walk_conf *conf, const char *cwd, GString *s)
{
	g_string_append(s, MAGIC "1\n");
	warm_line(s, conf);
	if (conf->follow)
		line(s, "follow", "yes");
	if (conf->one_fs)
		line(s, "one-file-system", "yes");
	lines(s, "include", conf->include);
	lines(s, "exclude", conf->exclude);
	share_lines(s, &conf->share);
	for (const char *const *root = conf->roots; root != NULL && *root != NULL; root++)
		path_line(s, "path", *root, cwd);
	if (conf->list != NULL && strcmp(conf->list, "-") != 0)
		path_line(s, "list", conf->list, cwd);
	else if (conf->list != NULL)
		line(s, "list", "-");
	if (conf->list != NULL)
		path_line(s, "root", conf->below != NULL ? conf->below : ".", cwd);
	if (conf->urls)
		line(s, "urls", "yes");
	g_string_append_c(s, '\n');
}

/* Values are escaped already; other bytes are escaped for the terminal. */
static char *
quote(const char *text, size_t n)
{
	char *part = g_strndup(text, n), *quoted = g_strescape(part, "\\\"");

	g_free(part);
	return (quoted);
}

/* The first line in which two heads differ, as "it has A, this run has B". */
static char *
difference(const char *theirs, const char *ours)
{
	char *why, *it, *now;
	size_t a, b;

	for (;;) {
		a = strcspn(theirs, "\n");
		b = strcspn(ours, "\n");
		if (a != b || a == 0 || memcmp(theirs, ours, a) != 0)
			break;
		theirs += a + 1;
		ours += b + 1;
	}
	it = quote(theirs, a);
	now = quote(ours, b);
	why = g_strdup_printf("it was written for \"%s\", now it is \"%s\"", it, now);
	g_free(it);
	g_free(now);
	return (why);
}

/* text ends with a NUL. */
static bool
is_key_line(const char *text)
{
	return (strspn(text, "0123456789abcdef") == WALK_KEY_CHARS && text[WALK_KEY_CHARS] == '\n');
}

gssize
walk_state_parse(const char *text, gsize n, const char *head, GHashTable *keys, char **why)
{
	const char *end = g_strstr_len(text, (gssize)n, "\n\n");
	gsize at;

	if (end == NULL || !g_str_has_prefix(text, MAGIC)) {
		*why = g_strdup(not_ours);
		return (-EPROTO);
	}
	at = (gsize)(end - text) + 2;
	if (at != strlen(head) || memcmp(text, head, at) != 0) {
		*why = difference(text, head);
		return (-EBUSY);
	}
	for (; n - at >= KEY_LINE && is_key_line(text + at); at += KEY_LINE)
		g_hash_table_add(keys, g_strndup(text + at, WALK_KEY_CHARS));
	return ((gssize)at);
}

/* ---------------------------------------------------------------- the file */

static int
write_all(int fd, const char *p, size_t n, off_t at)
{
	ssize_t done;

	for (; n > 0; p += done, n -= (size_t)done, at += done) {
		done = TEMP_FAILURE_RETRY(pwrite(fd, p, n, at));
		if (done <= 0)
			return (done < 0 ? -errno : -ENOSPC);
	}
	return (fdatasync(fd) < 0 ? -errno : 0);
}

static int
fill(int fd, const char *text)
{
	return (ftruncate(fd, 0) < 0 ? -errno : write_all(fd, text, strlen(text), 0));
}

/* fsync of the directory: it makes the rename durable. */
static int
sync_directory(const char *path)
{
	char *dir = g_path_get_dirname(path);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;

	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		err = -errno;
	if (fd >= 0)
		close(fd);
	g_free(dir);
	return (err);
}

static int
create(struct walk_state *s, const char *head)
{
	char *fresh = g_strconcat(s->path, ".new", NULL);
	int err;

	s->fd = open(fresh, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->fd < 0 || flock(s->fd, LOCK_EX | LOCK_NB) < 0)
		err = -errno;
	else if ((err = fill(s->fd, head)) == 0 && rename(fresh, s->path) < 0)
		err = -errno;
	if (err == 0)
		err = sync_directory(s->path);
	else if (err != -EAGAIN) /* the file belongs to another process */
		unlink(fresh);
	s->end = (off_t)strlen(head);
	g_free(fresh);
	return (err);
}

/* Only regular files: a fifo would block, a device has no end.  Reads only the beginning of a file
 * that is not a state file. */
static bool
is_state_file(int fd, off_t *size)
{
	char magic[sizeof(MAGIC) - 1];
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    pread(fd, magic, sizeof(magic), 0) != sizeof(magic))
		return (false);
	*size = st.st_size;
	return (memcmp(magic, MAGIC, sizeof(magic)) == 0);
}

static int
read_all(int fd, char *text, size_t n)
{
	ssize_t done;

	for (size_t at = 0; at < n; at += (size_t)done) {
		done = TEMP_FAILURE_RETRY(pread(fd, text + at, n - at, (off_t)at));
		if (done <= 0)
			return (done < 0 ? -errno : -EIO);
	}
	return (0);
}

static int
parse(struct walk_state *s, const char *head, size_t n, char **why)
{
	char *text = g_try_malloc(n + 1);
	gssize end = text != NULL ? read_all(s->fd, text, n) : -ENOMEM;

	if (end == 0) {
		text[n] = '\0';
		end = walk_state_parse(text, n, head, s->keys, why);
	}
	g_free(text);
	s->end = end;
	return (end < 0 ? (int)end : 0);
}

static int
load(struct walk_state *s, const char *head, char **why)
{
	off_t size;

	if (!is_state_file(s->fd, &size)) {
		*why = g_strdup(not_ours);
		return (-EPROTO);
	}
	if (flock(s->fd, LOCK_EX | LOCK_NB) < 0) {
		*why = g_strdup(in_use);
		return (-EAGAIN);
	}
	return (parse(s, head, (size_t)size, why));
}

static struct walk_state *
new_state(const char *path)
{
	struct walk_state *s = g_new0(struct walk_state, 1);

	s->path = g_strdup(path);
	s->keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	s->unsaved = g_string_new(NULL);
	s->noted = g_string_new(NULL);
	pthread_mutex_init(&s->lock, NULL);
	return (s);
}

int
walk_state_open(const char *path, const char *head, struct walk_state **sp, char **why)
{
	struct walk_state *s = new_state(path);
	int err;

	s->fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (s->fd >= 0)
		err = load(s, head, why);
	else if (errno == ENOENT)
		err = create(s, head);
	else
		err = -errno;
	if (err != 0) {
		if (*why == NULL)
			*why = g_strdup(err == -EAGAIN ? in_use : g_strerror(-err));
		walk_state_close(&s);
	}
	*sp = s;
	return (err);
}

void
walk_state_close(struct walk_state **sp)
{
	struct walk_state *s = *sp;

	*sp = NULL;
	if (s == NULL)
		return;
	if (s->fd >= 0)
		close(s->fd);
	g_hash_table_destroy(s->keys);
	g_string_free(s->unsaved, TRUE);
	g_string_free(s->noted, TRUE);
	pthread_mutex_destroy(&s->lock);
	g_free(s->path);
	g_free(s);
}

void
walk_state_remove(struct walk_state **sp)
{
	if (*sp != NULL)
		unlink((*sp)->path);
	walk_state_close(sp);
}

/* ---------------------------------------------------------------- finished batches */

bool
walk_state_knows(const struct walk_state *s, const char *key)
{
	return (g_hash_table_contains(s->keys, key));
}

void
walk_state_note(struct walk_state *s, const char *key)
{
	pthread_mutex_lock(&s->lock);
	g_string_append_printf(s->noted, "%s\n", key);
	pthread_mutex_unlock(&s->lock);
}

int
walk_state_save(struct walk_state *s)
{
	int err;

	pthread_mutex_lock(&s->lock);
	g_string_append_len(s->unsaved, s->noted->str, (gssize)s->noted->len);
	g_string_truncate(s->noted, 0);
	pthread_mutex_unlock(&s->lock);
	if (s->unsaved->len == 0)
		return (0);
	err = write_all(s->fd, s->unsaved->str, s->unsaved->len, s->end);
	if (err != 0)
		return (err);
	s->end += (off_t)s->unsaved->len;
	g_string_truncate(s->unsaved, 0);
	return (0);
}
