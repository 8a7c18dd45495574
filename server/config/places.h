/* server/config/places.h -- what a configuration names outside of itself: directories, logs, error pages, media types, hosts.
 *
 * Which values a request gets depends on the conditions that hold for it, but each of them stands in the file or in one
 * of its blocks.  So those of all blocks are opened before the first request, and a worker only looks them up.
 *
 * Owner    the generation; outlives its workers, who share the descriptors, and ends before its config.
 * Errors   places_new() returns NULL and writes one sentence to *err (errsize bytes): directive, value, what is wrong.
 * Thread   places_new() at start and at reload, may block; read-only afterwards.
 */
#ifndef SERVER_CONFIG_PLACES_H
#define SERVER_CONFIG_PLACES_H

#include "io/logfile.h"
#include "server/config/config.h"
#include "server/config/mime.h"
#include "server/config/site.h"

struct places;

struct place_dir {
	int root;         /* for IO_OPEN */
	struct text real; /* the directory without symbolic links */
};

typedef struct logfile *places_log_fn(void *arg, const char *path); /* NULL: unusable */

/* open_log NULL: access logs are left alone (-tt, which must not create files). */
struct places *places_new(const struct config *, places_log_fn *open_log, void *arg, char *err, size_t errsize);
/* Asks the configuration's sources what places_new() will ask them, so that a record has it; opens nothing. */
void places_fetch(const struct config *);
void places_free(struct places *);

/* Each NULL when the configuration does not name it. */
const struct place_dir *places_dir(const struct places *, const char *dir);
struct logfile *places_log(const struct places *, const char *path);
const struct page *places_pages(const struct places *, const char *prefix); /* PAGES of them, by status */
const struct mime *places_mime(const struct places *, const struct conf_map *assign);
const struct rewrite *places_rewrite(const struct places *, const struct conf_map *);

#endif
