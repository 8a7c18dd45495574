/* base/match.h -- a regular expression, compiled once (PCRE2, JIT where the system lets it).
 *
 * Thread   a struct match is read-only after match_new(); any thread may run it (each run has its
 *          own small match block on the caller's thread).
 * Bounds   steps, memory and about 5 ms of processor time end hostile backtracking.  Such a run has FAILED: it is neither
 *          a match nor none, and the caller refuses what depends on it.
 */
#ifndef BASE_MATCH_H
#define BASE_MATCH_H

#include "base/text.h"

#define MATCH_CAPTURES 10

struct match;

/* In a pattern "." is any byte, a line feed (%0A) too. */
/* FAILED: a limit was reached, memory is short, or the pattern asks for UTF-8 and the subject is none. */
enum match_result { MATCH_NO, MATCH_YES, MATCH_FAILED };

struct match *match_new(const char *pattern, char *err, size_t errsize); /* NULL: *err says why */
struct match *match_new_caseless(const char *pattern, char *err, size_t errsize);
void match_free(struct match *);
enum match_result match_run(const struct match *, struct text subject);
/* The same with $0..$9 as slices of subject; unset ones are TEXT_NONE. */
enum match_result match_capture(const struct match *, struct text subject, struct text cap[MATCH_CAPTURES]);

#endif
