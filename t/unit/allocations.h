/* t/unit/allocations.h -- allocations of the server that fail.
 *
 * The linker gives malloc() and the like to the functions here (--wrap in the Makefile).  Those
 * count, and fail, only while SERVER_WORKS().
 */
#ifndef T_UNIT_ALLOCATIONS_H
#define T_UNIT_ALLOCATIONS_H

#include <stdbool.h>
#include <stdlib.h>

#define SERVER_WORKS(on) short_of_memory(on)

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);

static struct {
	bool on;        /* the server works */
	unsigned n;     /* allocations so far */
	unsigned first; /* number of the allocation that fails; 0: none */
	bool lasts;     /* so do all after it */
} memory;

static void
short_of_memory(bool on)
{
	memory.on = on;
}

static bool
fails(void)
{
	if (!memory.on)
		return (false);
	memory.n++;
	return (memory.n == memory.first || (memory.lasts && memory.n > memory.first));
}

void *
__wrap_malloc(size_t n)
{
	return (fails() ? NULL : __real_malloc(n));
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return (fails() ? NULL : __real_calloc(n, size));
}

void *
__wrap_realloc(void *p, size_t n)
{
	return (fails() ? NULL : __real_realloc(p, n));
}

#endif
