/* io/lent.c -- see lent.h */
#include "io/lent.h"

#include <stdlib.h>

#include "io/engine.h"

struct io_lent {
	struct io *io;
	char *buf;
	unsigned refs;
};

struct io_lent *
io_lent_keep(struct io_op *op)
{
	struct io *io = op->io;
	struct io_lent *l;

	if (io->held > io->held_max || (l = malloc(sizeof(*l))) == NULL)
		return (NULL);
	*l = (struct io_lent){ io, io_keep(op), 1 };
	io->held += io->window;
	return (l);
}

struct io_lent *
io_lent_ref(struct io_lent *l)
{
	l->refs++;
	return (l);
}

void
io_lent_drop(void *lent)
{
	struct io_lent *l = lent;

	if (--l->refs > 0)
		return;
	l->io->held -= l->io->window;
	io_give_back(l->io, l->buf);
	free(l);
}
