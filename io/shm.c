/* io/shm.c -- see shm.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/must.h"
#include "io/shm.h"

#define SPARE 2u /* unused windows that are kept, each with a descriptor and its pages */

void
shm_pool_init(struct shm_pool *p, uint32_t size, unsigned max)
{
	list_init(&p->spare);
	list_init(&p->out);
	p->nspare = p->nout = 0;
	p->max = max;
	p->size = size;
}

static int
shm_open_map(struct shm *w, uint32_t size)
{
	w->fd = memfd_create("window", MFD_CLOEXEC);
	if (w->fd < 0 || ftruncate(w->fd, size) < 0)
		return (-errno);
	w->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	return (w->map == MAP_FAILED ? -errno : 0);
}

void
shm_free(struct shm *w, uint32_t size)
{
	if (w->map != MAP_FAILED)
		munmap(w->map, size);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

static int
shm_new(uint32_t size, struct shm **out)
{
	struct shm *w = calloc(1, sizeof(*w));
	int err;

	if (w == NULL)
		return (-ENOMEM);
	list_init(&w->link);
	w->map = MAP_FAILED;
	err = shm_open_map(w, size);
	if (err == 0)
		*out = w;
	else
		shm_free(w, size);
	return (err);
}

int
shm_get(struct shm_pool *p, struct shm **out)
{
	struct list *l;
	int err;

	if (p->nout == p->max)
		return (-ENOBUFS);
	l = list_pop(&p->spare);
	if (l != NULL) {
		*out = list_entry(l, struct shm, link);
		p->nspare--;
	} else if ((err = shm_new(p->size, out)) != 0) {
		return (err);
	}
	list_add_tail(&p->out, &(*out)->link);
	p->nout++;
	return (0);
}

bool
shm_put(struct shm_pool *p, struct shm *w)
{
	list_del(&w->link);
	p->nout--;
	if (p->nspare == SPARE)
		return (false);
	list_add_tail(&p->spare, &w->link);
	p->nspare++;
	return (true);
}

int
shm_renew(struct shm *w, uint32_t size)
{
	if (w->used && fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size) < 0)
		return (-errno);
	w->used = true;
	return (0);
}

static void
free_all(struct list *windows, uint32_t size)
{
	struct list *l;

	while ((l = list_pop(windows)) != NULL)
		shm_free(list_entry(l, struct shm, link), size);
}

void
shm_pool_free(struct shm_pool *p)
{
	free_all(&p->spare, p->size);
	free_all(&p->out, p->size);
}
