/* base/match.h -- a regular expression, compiled once (PCRE2, JIT where the system lets it).
 *
 * Thread   a struct match is read-only after match_new(); any thread may run it (each run has its
 *          own small match block on the caller's thread).
 * Bounds   a match limit ends hostile backtracking: such a run counts as "does not match".
 */
#ifndef BASE_MATCH_H
#define BASE_MATCH_H

#include "base/text.h"

#define MATCH_CAPTURES 10

struct match;

struct match *match_new(const char *pattern, char *err, size_t errsize); /* NULL: *err says why */
void match_free(struct match *);
bool match_run(const struct match *, struct text subject);
/* The same with $0..$9 as slices of subject; unset ones are TEXT_NONE. */
bool match_capture(const struct match *, struct text subject, struct text cap[MATCH_CAPTURES]);

#endif
