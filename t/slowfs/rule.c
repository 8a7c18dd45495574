#include "rule.h"
#include "node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

static struct rule *rules;

int
rule_add(const struct outcome *o, off_t from, const char *pattern)
{
	struct rule *r;

	if ((r = calloc(1, sizeof(*r) + strlen(pattern) + 1)) == NULL)
		return (-ENOMEM);
	r->outcome = *o;
	r->from = from;
	strcpy(r->pattern, pattern);
	r->next = rules;
	rules = r;
	return (0);
}

void
rules_clear(void)
{
	struct rule *r;

	while ((r = rules) != NULL) {
		rules = r->next;
		free(r);
	}
}

int
rules_count(void)
{
	const struct rule *r;
	int n = 0;

	for (r = rules; r != NULL; r = r->next)
		n++;
	return (n);
}

bool
rules_hang(void)
{
	const struct rule *r;

	for (r = rules; r != NULL && r->outcome.effect != HANG; r = r->next)
		;
	return (r != NULL);
}

/* A read that begins before the offset and ends after it cannot be answered in part: the kernel
 * takes a short answer for the end of the file.  One for the page cache fails as a whole, and the
 * kernel asks again for each page that a reader wants, so that the rule holds to the page.  A
 * direct one is what its caller asked for, and meets the rule as a whole. */
static struct outcome
straddle(const struct question *q, const struct rule *r)
{
	if (!q->direct && q->size > PAGE)
		return ((struct outcome){ .effect = FAIL, .err = EIO });
	return (r->outcome);
}

struct outcome
rules_judge(const struct question *q)
{
	const struct rule *r;

	for (r = rules; r != NULL; r = r->next) {
		if (!path_matches(r->pattern, q->path))
			continue;
		if (r->from < 0)
			return (r->outcome);
		if (!q->is_read || q->off + (off_t)q->size <= r->from)
			continue;
		return (q->off >= r->from ? r->outcome : straddle(q, r));
	}
	return ((struct outcome){ .effect = PASS });
}
