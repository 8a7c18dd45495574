/* server/module/pattern.h -- a list of ( regex => replacement ), as url.redirect and url.rewrite-*
 * have it; compiled once.
 *
 *   $0 to $9            what the regex of the rule captured
 *   %0 to %9            what the condition captured that stands around the setting
 *   $$ %%               a dollar, a percent sign
 *   ${12} %{3}          the same captures, 0 to 19
 *   ${url.scheme}       also url.authority, url.port, url.path, url.query
 *   ${qsa}              the query, after "?" or "&"; nothing if there is none
 *   ${esc:1}            a modifier before one of them: see modifiers[] in pattern.c
 *
 * The first rule that matches decides.  An empty replacement means: change nothing.
 *
 * Pure.    Nothing but the struct is read, and nothing but *out is written.
 * Bounds   PATTERN_MAX bytes of result.
 * Thread   read-only after patterns_new().
 */
#ifndef SERVER_MODULE_PATTERN_H
#define SERVER_MODULE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include "base/text.h"

#define PATTERN_MAX (12u << 10) /* with the rest of a head less than IO_CHUNK */

struct buf;
struct conf_map;
struct patterns;

struct pattern_input {
	struct text subject; /* the target: encoded path, "?", query */
	struct text scheme, authority, path, query;
	unsigned port;
	const struct text *cond; /* MATCH_CAPTURES of the condition; NULL: none */
	bool cond_decoded;       /* they are slices of a decoded path */
};

enum pattern_result {
	PATTERN_NONE, /* no rule matches, or the one that matches changes nothing */
	PATTERN_MADE,
	PATTERN_TOO_LONG, /* PATTERN_MAX, or no memory */
	PATTERN_UNDECIDED /* a regex reached a limit of base/match.h */
};

/* Compiles the rows of a setting.  NULL: *err says why, in one sentence. */
struct patterns *patterns_new(const struct conf_map *, char *err, size_t errsize);
void patterns_free(struct patterns *); /* NULL is allowed */
/* A replacement names what a condition captured. */
bool patterns_use_condition(const struct patterns *);
/* *out, which is empty, gets the result: printable ASCII without blanks.  *rule: the number of the
 * rule that matched. */
enum pattern_result patterns_apply(const struct patterns *, const struct pattern_input *,
    struct buf *out, size_t *rule);

#endif
