#include "accel-pool/marker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define HEAD "accel-pool 1"

/* ---------------------------------------------------------------- text */

static bool
parse_line(struct text line, struct marker *m)
{
	struct text rest = line, word;
	struct spec s;

	if (text_eq(line, TEXT("new"))) {
		m->made_dir = true;
		return (true);
	}
	if (!text_next(&rest, ' ', &word))
		return (false);
	if (text_eq(word, TEXT("seed")))
		return (text_u64(rest, &m->seed) == 0);
	return (text_eq(word, TEXT("spec")) && spec_parse(rest, &s) == NULL &&
		marker_add(m, &s) == NULL);
}

int
marker_parse(struct text t, struct marker *m)
{
	struct text line;

	*m = (struct marker){ .seed = 1 };
	if (!text_next(&t, '\n', &line) || !text_eq(line, TEXT(HEAD)))
		return (-EPROTO);
	while (text_next(&t, '\n', &line))
		if (line.n > 0 && !parse_line(line, m))
			return (-EPROTO);
	return (0);
}

void
marker_put(const struct marker *m, struct buf *out)
{
	char text[SPEC_TEXT_MAX];

	buf_printf(out, HEAD "\nseed %" PRIu64 "\n%s", m->seed, m->made_dir ? "new\n" : "");
	for (unsigned i = 0; i < m->n; i++) {
		spec_put(&m->specs[i], text);
		buf_printf(out, "spec %s\n", text);
	}
}

const char *
marker_add(struct marker *m, const struct spec *s)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct spec *old = &m->specs[i];

		if (old->min != s->min || old->max != s->max)
			continue;
		if (old->dirs >= s->dirs && old->files >= s->files)
			return (NULL);
		if (old->dirs > s->dirs || old->files > s->files)
			return ("the pool has this size in another shape; it can grow only");
		*old = *s;
		return (NULL);
	}
	if (m->n == SPECS_MAX)
		return ("the pool has 64 sizes already");
	m->specs[m->n++] = *s;
	return (NULL);
}

const struct spec *
marker_find(const struct marker *m, struct text path, struct spec_place *place)
{
	for (unsigned i = 0; i < m->n; i++)
		if (spec_place_of(&m->specs[i], path, place))
			return (&m->specs[i]);
	return (NULL);
}

/* ---------------------------------------------------------------- file */

int
marker_lock(int dir)
{
	if (flock(dir, LOCK_EX | LOCK_NB) == 0)
		return (0);
	return (errno == EWOULDBLOCK ? -EAGAIN : -errno);
}

int
marker_read(int dir, struct marker *m)
{
	char buf[MARKER_MAX];
	int fd = openat(dir, MARKER, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return (errno == ELOOP ? -EPROTO : -errno);
	n = TEMP_FAILURE_RETRY(pread(fd, buf, sizeof(buf), 0));
	close(fd);
	if (n < 0 || n == sizeof(buf))
		return (n < 0 && errno != EISDIR ? -errno : -EPROTO);
	return (marker_parse((struct text){ buf, (size_t)n }, m));
}

static int
write_whole(int fd, const struct buf *b)
{
	ssize_t n = TEMP_FAILURE_RETRY(write(fd, b->p, b->n));
	int err = n < 0 ? -errno : (size_t)n < b->n ? -ENOSPC : 0;

	if (close(fd) < 0 && err == 0)
		err = -errno;
	return (err);
}

int
marker_write(int dir, const struct marker *m)
{
	struct buf b;
	int fd, err;

	unlinkat(dir, MARKER_NEW, 0);
	fd = openat(dir, MARKER_NEW, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return (-errno);
	buf_init(&b, 0);
	marker_put(m, &b);
	err = write_whole(fd, &b);
	buf_free(&b);
	if (err == 0 && renameat(dir, MARKER_NEW, dir, MARKER) < 0)
		err = -errno;
	if (err != 0)
		unlinkat(dir, MARKER_NEW, 0);
	return (err);
}
