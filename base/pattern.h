/* base/pattern.h -- file contents that prove their own name and offset.
 *
 * Each file of a pool is filled with 8-byte words that follow from its name and their offset:
 *
 *	name "0007/0042.bin" --> key --> word(key, 0) word(key, 1) word(key, 2) ...
 *
 * A reader that knows the name finds a byte of another file, of another offset or of no file at
 * all.  The words are little-endian, and do not compress.  accel-pool writes them, and accel-load
 * checks them.
 *
 * Name     the path of the file below the directory of its pool: bytes, without a slash at its
 *          start.
 * Error    A word of another file or offset differs in its first byte with a chance of 255 in 256,
 *          and within 8 bytes for sure if the key is the same.
 * Speed    more than 3 GB/s, to fill and to check.
 */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t pattern_key(const char *name, size_t n);

/* n bytes of the file, from offset; any alignment. */
void pattern_fill(uint64_t key, uint64_t offset, void *buf, size_t n);

/* The index of the first wrong byte in buf, or n: all are right. */
size_t pattern_check(uint64_t key, uint64_t offset, const void *buf, size_t n);

/* The last parts of a path that are tried as a name. */
#define PATTERN_PARTS 64
/* The bytes of a name that must be right. */
#define PATTERN_SURE 8

/* The pool begins at some slash of the path of a URL (decoded, with or without a slash at its
 * start): *key becomes the key of the end of the path that most bytes at offset agree with.  False:
 * none agrees with the first PATTERN_SURE bytes, or with all if there are fewer; *key is unchanged.
 */
bool pattern_find(const char *path, size_t len, uint64_t offset, const void *bytes, size_t n,
    uint64_t *key);

#endif
