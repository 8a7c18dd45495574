#include "accel-warm/print.h"

#include <errno.h>
#include <stdio.h>

#include "walk/batch.h"
#include "walk/walker.h"

/* walk_conf.visit(); stdio has a lock for the threads. */
static int
print_path(struct walker *w, const struct walk_batch *b, const char *name, bool follow)
{
	struct buf path;
	int err = 0;

	buf_init(&path, 0);
	walk_dir_path(b->dir, name, &path);
	if (path.failed)
		err = -ENOMEM;
	else {
		path.p[path.n - 1] = w->shared->conf->nul ? '\0' : '\n';
		if (fwrite(path.p, 1, path.n, stdout) != path.n)
			err = -EIO;
	}
	buf_free(&path);
	return (err);
}

void
print_instead(struct walk_conf *conf)
{
	conf->visit = print_path;
	conf->quiet = true;
	conf->json = false;
}
