/* server/module/rules.h -- settings that are compiled once, and their numbers: RULES_NAME. */
#ifndef SERVER_MODULE_RULES_H
#define SERVER_MODULE_RULES_H

#include <stddef.h>

struct conf;

enum {
#define R(name) RULES_##name,
#include "server/module/rules.def"
#undef R
	RULES
};

/* What a directive says, compiled once for the block that sets it; in struct site by number. */
struct rules_kind {
	/* Or several, separated by spaces: an error is about the first that the block sets. */
	const char *directive;
	/* The value in memory that tells one setting from another; NULL: not set. */
	const void *(*key)(const struct conf *);
	/* NULL: one sentence in *err. */
	void *(*make)(const struct conf *, char *err, size_t errsize);
	void (*free)(void *);
	/* NULL, or what the other settings of this set of conditions lack.  A setting that
	 * lacks it in every set is an error.  No function: it lacks nothing. */
	const char *(*lacks)(const struct conf *);
};
extern const struct rules_kind *const rules_kinds[RULES + 1]; /* server/module/modules.c */

#endif
