/* io/memory/memory.h -- how much memory this process may use. */
#ifndef IO_MEMORY_H
#define IO_MEMORY_H

#include "base/text.h"

/* Bytes: the smallest of the machine's memory and the limits of the own cgroup and those above it,
 * v1 and v2.  Never 0.
 *
 * Thread   any.  The first call reads files of /proc and of the cgroup file system, so it is made
 *          at start, before a sandbox closes them; later calls give the same number. */
uint64_t io_memory_limit(void);

/* The pure part: bytes of memory.max or memory.limit_in_bytes.  False: "max", or not a number. */
bool io_memory_limit_parse(struct text, uint64_t *bytes);

#endif
