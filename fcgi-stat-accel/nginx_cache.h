/* fcgi-stat-accel/nginx_cache.h -- from a key of proxy_cache or fastcgi_cache to the file that
 * nginx opens for it.  Pure.
 *
 * nginx names the file by the MD5 of the key.  The digits of each level come from its end:
 *
 *   http://example.com/         a6bf1757fff057f266b697df9cf176fd
 *   levels=1:2      /cache/d/6f/a6bf1757fff057f266b697df9cf176fd
 *
 * For an answer with Vary this is nginx's main file, which holds the variant that was stored first.
 * The names of other variants depend on headers of the request, so the accelerator is not asked for
 * these files.
 */
#ifndef FCGI_STAT_ACCEL_NGINX_CACHE_H
#define FCGI_STAT_ACCEL_NGINX_CACHE_H

#include <glib.h>
#include <stdbool.h>

#include "wire/http1/range.h"

#define NGINX_CACHE_LEVELS 3

struct nginx_cache {
	const char *name; /* NULL: only its path names it */
	const char *path; /* absolute, without a slash at its end */
	/* digits of each level, 1 or 2; 0: no more levels */
	unsigned char levels[NGINX_CACHE_LEVELS];
};

/* "[NAME=]PATH[:LEVELS]"; a level is 1 or 2.  False: not of this form; *cache is unchanged then. */
bool nginx_cache_read(const char *text, struct nginx_cache *);

/* The cache with this name or path; if name is NULL, the first one.  Returns NULL if none fits.
 * The last element of all has .path NULL. */
const struct nginx_cache *nginx_cache_find(const struct nginx_cache *all, const char *name);

void nginx_cache_file(const struct nginx_cache *, const char *key, GString *path);

/* A file of the cache begins with a head. This function moves the range of the answer by it. */
void nginx_cache_ranges(struct range_set *);

#endif
