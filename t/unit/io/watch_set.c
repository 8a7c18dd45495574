/* t/unit/io/watch_set.c -- files that others change. */
#include <glib/gstdio.h>
#include <poll.h>
#include <unistd.h>
#include "io/watch_set.h"
#include "t/unit/io/in_dir.h"

static char *
put(const char *name, const char *text)
{
	char *path = g_build_filename(dir, name, NULL);
	int fd = g_creat(path, 0600);

	g_assert_cmpint(fd, >=, 0);
	g_assert_cmpint(write(fd, text, strlen(text)), ==, (ssize_t)strlen(text));
	close(fd);
	return (path);
}

/* True: an event of the set is there. */
static bool
event(struct watch_set *w)
{
	struct pollfd p = { .fd = watch_set_fd(w), .events = POLLIN };

	return (poll(&p, 1, 0) == 1 && watch_set_events(w));
}

TEST("/watch/files that change, come and go")
{
	char *v[2] = { put("a", "1"), put("b", "1") }, *other = put("other", "1"),
	     *next = put("next", "22");
	struct watch_set *w = watch_set_new(v, 2);

	g_assert_true(watch_set_changed(w)); /* the first look */
	g_assert_false(watch_set_changed(w));
	g_assert_cmpint(watch_set_look_ms(w), ==, WATCH_LOOK_MS);
	g_free(put("other", "2"));
	g_assert_false(event(w));
	g_free(put("b", "2")); /* equal size, perhaps equal time: the event tells it */
	g_assert_true(event(w));
	g_assert_false(event(w));
	(void)watch_set_changed(w);
	g_assert_cmpint(rename(next, v[0]), ==, 0);
	g_assert_true(event(w));
	g_assert_true(watch_set_changed(w));
	g_assert_false(watch_set_changed(w));
	g_unlink(v[1]);
	g_assert_true(event(w));
	g_assert_true(watch_set_changed(w));
	watch_set_free(w);
	g_free(v[0]);
	g_free(v[1]);
	g_free(other);
	g_free(next);
}

TEST("/watch/the file at the end of a link, without an event")
{
	g_autofree char *sub = g_build_filename(dir, "sub", NULL),
			*link = g_build_filename(dir, "l", NULL);
	char *v[] = { link }, *target;
	struct watch_set *w;

	g_assert_cmpint(g_mkdir(sub, 0700), ==, 0);
	target = put("sub/t", "1");
	g_assert_cmpint(symlink(target, link), ==, 0);
	w = watch_set_new(v, 1);
	(void)watch_set_changed(w);
	g_free(put("sub/t", "22"));
	g_assert_false(event(w));
	g_assert_true(watch_set_changed(w));
	watch_set_free(w);
	g_free(target);
}

TEST("/watch/a directory that comes")
{
	g_autofree char *sub = g_build_filename(dir, "late", NULL),
			*file = g_build_filename(sub, "f", NULL);
	char *v[] = { file };
	struct watch_set *w = watch_set_new(v, 1);

	(void)watch_set_changed(w);
	g_assert_cmpint(watch_set_look_ms(w), <, WATCH_LOOK_MS); /* nothing tells it */
	g_assert_cmpint(g_mkdir(sub, 0700), ==, 0);
	g_assert_false(watch_set_changed(w));
	g_assert_cmpint(watch_set_look_ms(w), ==, WATCH_LOOK_MS);
	g_free(put("late/f", "1"));
	g_assert_true(event(w));
	g_assert_true(watch_set_changed(w));
	watch_set_free(w);
}

TEST("/watch/no files")
{
	g_assert_false(watch_set_changed(NULL));
	g_assert_cmpint(watch_set_fd(NULL), ==, -1);
	g_assert_cmpint(watch_set_look_ms(NULL), ==, -1);
	watch_set_free(NULL);
}
