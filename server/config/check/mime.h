/* server/config/check/mime.h -- the MIME type of a file, from the end of its name.
 *
 *   mimetype.assign, suffixes in the order of the file     first match wins
 *   its "" => "..." row                                    the default, if there is one
 *   the system's mime.types, or a built-in table           by the last extension, any case
 *   application/octet-stream
 *
 * The type is looked up once, when a file enters the cache, so the assigned rows may be searched
 * one by one.
 *
 * Owner    mime_new() copies what it needs; a type lives as long as the struct mime.
 * Errors   mime_new() returns NULL and writes one sentence to *err (errsize bytes).
 * Thread   any; read-only after mime_new().
 */
#ifndef SERVER_CONFIG_MIME_H
#define SERVER_CONFIG_MIME_H

#include <stddef.h>
#include "base/text.h"
#include "server/config/config.h"

#define MIME_SYSTEM_FILE "/etc/mime.types"

struct mime;

/* types: the text of a mime.types file; without it a table of common types is used. */
struct mime *mime_new(const struct conf_map *assign, struct text types, char *err, size_t errsize);
void mime_free(struct mime *);
/* never empty; with a NUL after it */
struct text mime_type(const struct mime *, struct text path);

#endif
