/* server/config/mime.h -- the media type of a file, by the end of its name.
 *
 *   mimetype.assign, suffixes in the order of the file     first match wins
 *   its "" => "..." row                                    the default, if there is one
 *   the system's mime.types, or a built-in table           by the last extension, any case
 *   application/octet-stream
 *
 * Asked only when a file enters the cache, so a miss may walk the assigned rows one by one.
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

/* types: the text of a mime.types file; without one a table of the common types stands in for it. */
struct mime *mime_new(const struct conf_map *assign, struct text types, char *err, size_t errsize);
void mime_free(struct mime *);
struct text mime_type(const struct mime *, struct text path); /* never empty; NUL behind it */

#endif
