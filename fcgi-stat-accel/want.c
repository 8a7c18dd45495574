#include "fcgi-stat-accel/want.h"

#include <string.h>

#include "fcgi-stat-accel/accel.h"

#define PAGE 4096ull

static const struct range_set all = { 1, { { 0, UINT64_MAX } } };

static uint64_t
round_up(uint64_t n)
{
	return (n > UINT64_MAX - PAGE ? UINT64_MAX : (n + PAGE - 1) & ~(PAGE - 1));
}

static void
whole_pages(struct range_part *p)
{
	if (p->from == RANGE_TAIL) {
		p->to = round_up(p->to);
		return;
	}
	p->from &= ~(PAGE - 1);
	p->to = round_up(p->to);
}

void
want_of(char **params, struct range_set *want)
{
	const char *method = accel_param(params, "REQUEST_METHOD"), *range = accel_param(params, "HTTP_RANGE");

	*want = all;
	if (method != NULL && strcmp(method, "HEAD") == 0) {
		want->n = 0;
		return;
	}
	if (range == NULL || accel_param(params, "HTTP_IF_RANGE") != NULL || !range_set_read(text_of(range), want)) {
		*want = all;
		return;
	}
	for (unsigned i = 0; i < want->n; i++)
		whole_pages(&want->part[i]);
}
