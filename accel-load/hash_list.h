/* accel-load/hash_list.h -- a file as sha256sum writes it: "HASH  PATH", one a line.
 *
 * The length of a hash says whether it is of md5sum, sha1sum, sha256sum or sha512sum; all lines
 * have the same kind.  "HASH *PATH" and names with escapes ("\HASH  a\nb") are read as these
 * programs read them.  A PATH belongs to the URLs whose path ends with it, at a slash.
 *
 * Input is hostile: at most HASH_LIST_MAX bytes.  Pure.
 */
#ifndef ACCEL_LOAD_HASH_LIST_H
#define ACCEL_LOAD_HASH_LIST_H

#include <glib.h>

#include "base/text.h"

#define HASH_LIST_MAX (256u << 20)

struct hash_list {
	GHashTable *hashes; /* PATH without "./" and "/" at its start --> hash, in lower case */
	GChecksumType type;
};

/* False: *line is the number of the line at fault, *why a constant text "expected ...". */
bool hash_list_read(struct text in, struct hash_list *, unsigned *line, const char **why);
void hash_list_free(struct hash_list *);

/* path: decoded, from "/".  NULL: it has no hash. */
const char *hash_list_find(const struct hash_list *, const char *path);

#endif
