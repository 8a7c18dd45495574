/* base/match.h -- a regular expression, compiled once (PCRE2, with JIT if the system allows it).
 *
 * Thread   a struct match is read-only after match_new(); any thread may run it (each run has a
 *          small match block on the caller's thread).
 * Bounds   limits of steps, memory and about 4 ms of processor time end hostile backtracking.  Such
 *          a run has FAILED: it is neither a match nor a mismatch, and the caller refuses the
 *          request.
 */
#ifndef BASE_MATCH_H
#define BASE_MATCH_H

#include "base/text.h"

#define MATCH_CAPTURES 20

struct match;

enum match_result {
	MATCH_NO,
	MATCH_YES,
	/* A limit was reached, memory is short, or the pattern needs UTF-8 and the subject is not
	 * UTF-8. */
	MATCH_FAILED
};

/* In a pattern "." is any byte, a line feed (%0A) too.  NULL: *err has the reason. */
struct match *match_new(const char *pattern, bool caseless, char *err, size_t errsize);
void match_free(struct match *);
enum match_result match_run(const struct match *, struct text subject);
/* As match_run(), with $0..$19 as slices of subject; unset ones are TEXT_NONE. */
enum match_result match_capture(const struct match *, struct text subject,
    struct text cap[MATCH_CAPTURES]);

#endif
