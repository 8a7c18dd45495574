/* files/root.c -- see root.h */
#include "files/root.h"

#include <errno.h>
#include <stdlib.h>

#include "io/io.h"

/* Takes the string; "/" becomes "". */
static struct text
without_slashes(char *dir)
{
	struct text t;

	for (t = text_of(dir); t.n > 0 && dir[t.n - 1] == '/'; t.n--)
		dir[t.n - 1] = '\0';
	return (t);
}

int
root_open(const char *dir, struct root *r)
{
	int err = io_root_open(dir, &r->fd);
	char *name, *real;

	if (err != 0)
		return (err);
	name = strdup(dir);
	real = realpath(dir, NULL);
	if (real == NULL)
		real = strdup(dir);
	if (name == NULL || real == NULL) {
		io_close_fd(r->fd);
		free(name);
		free(real);
		return (-ENOMEM);
	}
	r->name = without_slashes(name);
	r->real = without_slashes(real);
	return (0);
}

void
root_close(struct root *r)
{
	io_close_fd(r->fd);
	free((char *)r->name.p);
	free((char *)r->real.p);
}

static bool
tail_after(struct text dir, struct text path, struct text *tail)
{
	if (path.n <= dir.n || path.p[dir.n] != '/' || !text_starts(path, dir))
		return (false);
	*tail = (struct text){ path.p + dir.n, path.n - dir.n };
	while (tail->n != 0 && tail->p[0] == '/')
		tail->p++, tail->n--;
	return (true);
}

bool
root_tail(const struct root *r, struct text path, struct text *tail)
{
	return (tail_after(r->name, path, tail) || tail_after(r->real, path, tail));
}
