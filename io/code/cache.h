/* io/code/cache.h -- inside io/code/ only: the files of a struct code_cache.
 *
 *   cache_begin() --> tmp-PID-NUMBER --cache_write()--> cache_name() --> NAME      cache_open()
 *                                        `--error--> cache_drop()
 */
#ifndef IO_CODE_CACHE_H
#define IO_CODE_CACHE_H

#include <sys/stat.h>
#include "io/code/file.h"

struct cache_file {
	int fd;
	char temp[48];
};

void cache_file_name(const struct code_file *, char name[CODE_NAME_MAX]);
/* A descriptor, or -errno.  Files of other users are not opened. */
int cache_open(struct code_cache *, const char *name, struct stat *);
int cache_begin(struct code_cache *, struct cache_file *);
int cache_write(struct cache_file *, struct text);
/* The bytes of the file are on the disk before the file gets its name. */
int cache_name(struct code_cache *, struct cache_file *, const char *name, uint64_t size);
/* Closes the file, and removes it unless it has got its name; .fd -1: no effect. */
void cache_drop(struct code_cache *, struct cache_file *);

#endif
