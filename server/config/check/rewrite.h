/* server/config/check/rewrite.h -- proxy-core.rewrite-request and rewrite-response: NAME => ( regex
 * => replacement ).
 *
 * The first regex that matches turns the whole value into its replacement, where $0..$9 are the
 * captures and $$ is a dollar.  Without a match the value is unchanged.  A value has no control
 * character except HTAB: neither a captured part nor a replacement has one (directives.def), except
 * in the special names _pathinfo and _scriptname, which are decoded and not headers.  NAME is a
 * header in any case, or a special name of a request (_uri, _docroot, _pathinfo, _scriptname).
 *
 * Errors   rewrite_new(): NULL and one sentence in *err.
 * Thread   read-only after rewrite_new().
 */
#ifndef SERVER_CONFIG_REWRITE_H
#define SERVER_CONFIG_REWRITE_H

#include "base/arena.h"
#include "server/config/config.h"

struct rewrite;

struct rewrite *rewrite_new(const struct conf_map *, char *err, size_t errsize);
void rewrite_free(struct rewrite *); /* NULL is allowed */
/* Returns the value, unchanged or rewritten in the arena.  .p NULL: the arena is full, or a regular
 * expression reached a limit (base/match.h).  rw NULL: unchanged. */
struct text rewrite_value(const struct rewrite *rw, struct text name, struct text value,
    struct arena *);
/* Name of the i-th rule; .p NULL: no more. */
struct text rewrite_name(const struct rewrite *rw, size_t i);
bool rewrite_is_special(struct text name); /* a special name of a request, not a header */

#endif
