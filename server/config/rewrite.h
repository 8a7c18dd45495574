/* server/config/rewrite.h -- proxy-core.rewrite-request and rewrite-response: NAME => ( regex => replacement ).
 *
 * The first match of the regex turns the whole value into the replacement, in which $0..$9 stand for what was
 * captured and $$ for a dollar; no match leaves the value as it is.  NAME is a header, any case, or one of the special
 * names of a request (_uri, _docroot, _pathinfo, _scriptname).
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
void rewrite_free(struct rewrite *); /* NULL is fine */
/* The value to use: as given, or rewritten in the arena (.p NULL: no memory left there, or a
 * regular expression reached a limit, see base/match.h).  rw NULL: as given. */
struct text rewrite_value(const struct rewrite *rw, struct text name, struct text value, struct arena *);

#endif
