#include "accel-pool/urls.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"

void
urls_init(struct urls *u, const struct urls_conf *conf)
{
	const bool keeps = conf->order != URLS_AS_THEY_COME;

	*u = (struct urls){ .conf = *conf };
	u->kept = keeps ? g_ptr_array_new() : NULL;
	u->seen = conf->unique ? g_hash_table_new(g_str_hash, g_str_equal) : NULL;
	u->memory = keeps || conf->unique ? g_string_chunk_new(64 * 1024) : NULL;
}

void
urls_free(struct urls *u)
{
	if (u->kept != NULL)
		g_ptr_array_free(u->kept, TRUE);
	if (u->seen != NULL)
		g_hash_table_destroy(u->seen);
	if (u->memory != NULL)
		g_string_chunk_free(u->memory);
}

static bool
is_full(const struct urls *u)
{
	return (u->conf.limit != 0 && u->printed >= u->conf.limit);
}

static void
print(struct urls *u, const char *url)
{
	if (u->conf.base != NULL)
		fputs(u->conf.base, u->conf.out);
	fputs(url, u->conf.out);
	putc('\n', u->conf.out);
	u->printed++;
}

bool
urls_add(struct urls *u, const char *url, size_t n)
{
	if (is_full(u))
		return (false);
	if (n + (u->conf.base != NULL ? strlen(u->conf.base) : 0) > LIST_URL_MAX) {
		u->too_long++;
		return (true);
	}
	if (u->seen != NULL && g_hash_table_contains(u->seen, url))
		return (true);
	if (u->memory != NULL)
		url = g_string_chunk_insert_len(u->memory, url, (gssize)n);
	if (u->seen != NULL)
		g_hash_table_add(u->seen, (void *)url);
	if (u->kept != NULL)
		g_ptr_array_add(u->kept, (void *)url);
	else
		print(u, url);
	return (!is_full(u));
}

static int
by_bytes(const void *a, const void *b)
{
	return (strcmp(*(char *const *)a, *(char *const *)b));
}

static void
shuffle(void **v, size_t n, uint64_t seed)
{
	void *swap;
	size_t j;

	for (size_t i = n; i > 1; i--) {
		j = (size_t)(((unsigned __int128)random_next(&seed) * i) >> 64);
		swap = v[i - 1];
		v[i - 1] = v[j];
		v[j] = swap;
	}
}

/* Threads find the files of a tree in any order: a shuffle begins with the sorted one. */
int
urls_end(struct urls *u)
{
	if (u->kept != NULL)
		g_ptr_array_sort(u->kept, by_bytes);
	if (u->kept != NULL && u->conf.order == URLS_SHUFFLED)
		shuffle(u->kept->pdata, u->kept->len, u->conf.seed);
	for (guint i = 0; u->kept != NULL && i < u->kept->len && !is_full(u); i++)
		print(u, u->kept->pdata[i]);
	errno = EIO;
	return (fflush(u->conf.out) == 0 && !ferror(u->conf.out) ? 0 : -errno);
}
