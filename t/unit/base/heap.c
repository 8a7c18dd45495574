/* t/unit/base/heap.c -- threads that come and go fill a bounded number of arenas. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "t/unit/test.h"

#define THREADS 24

static pthread_barrier_t all_have;

static void *
thread(void *arg)
{
	void *p = g_malloc(1000); /* not one that the compiler leaves out */

	(void)arg;
	pthread_barrier_wait(&all_have);
	g_free(p);
	return (NULL);
}

/* the heaps that malloc_info(3) tells of */
static unsigned
arenas(void)
{
	char *text = NULL, *p;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	unsigned found = 0;

	g_assert_nonnull(f);
	g_assert_cmpint(malloc_info(0, f), ==, 0);
	fclose(f);
	for (p = text; (p = strstr(p, "<heap nr=")) != NULL; p++)
		found++;
	free(text);
	return (found);
}

TEST("/heap/threads share arenas")
{
	pthread_t t[THREADS];
	size_t i;

	heap_begin(3);
	g_assert_cmpint(pthread_barrier_init(&all_have, NULL, THREADS), ==, 0);
	for (i = 0; i < THREADS; i++)
		g_assert_cmpint(pthread_create(&t[i], NULL, thread, NULL), ==, 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	g_assert_cmpuint(arenas(), <=, 4);
	/* sanitizers have a heap of their own */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	g_assert_cmpuint(arenas(), >, 1);
#endif
	heap_trim();
	pthread_barrier_destroy(&all_have);
}
