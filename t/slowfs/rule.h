/* rule.h -- what was ordered at run time: which requests hang, which fail.
 *
 * The newest rule that a request meets decides.  No lock of its own: the caller holds that of the
 * jobs.
 */
#ifndef SLOWFS_RULE_H
#define SLOWFS_RULE_H

#include <stdbool.h>
#include <sys/types.h>

enum effect { PASS, HANG, FAIL };

struct outcome {
	enum effect effect;
	bool keeps_spindle; /* HANG */
	int err;            /* FAIL: an errno */
};

struct rule {
	struct rule *next;
	struct outcome outcome; /* HANG or FAIL */
	off_t from;             /* reads at or after this; -1: all requests */
	char pattern[];         /* see path_matches() */
};

struct question {
	const char *path; /* below the source */
	bool is_read;
	bool direct; /* of a read: O_DIRECT */
	off_t off;
	size_t size;
};

int rule_add(const struct outcome *, off_t from, const char *pattern); /* 0 or -ENOMEM */
void rules_clear(void);
int rules_count(void);
bool rules_hang(void); /* one of them makes requests hang */
struct outcome rules_judge(const struct question *);

#endif
