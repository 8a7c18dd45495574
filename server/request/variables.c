/* server/request/variables.c -- the variables of a request for applications; see request.h. */
#include "server/request/request.h"

#include "wire/codec/message.h"

static REQUEST_SLOT(struct request_variables, mine);

static size_t
find(const struct request_variables *m, struct text name)
{
	size_t i = 0;

	while (i < m->n && !text_eq(m->v[i].name, name))
		i++;
	return (i);
}

bool
request_variable(struct request *r, struct text name, struct text value, enum variable_rule rule)
{
	struct request_variables *m = request_slot(r, mine);
	struct proxy_field *all = (struct proxy_field *)(uintptr_t)m->v;
	size_t i = find(m, name);

	if (i < m->n && rule == VARIABLE_DEFAULT)
		return (true);
	if (i == VARIABLES_MAX || name.p == NULL || value.p == NULL)
		return (false);
	if (all == NULL) {
		all = arena_get(&r->arena, VARIABLES_MAX * sizeof(*all));
		if (all == NULL)
			return (false);
		m->v = all;
	}
	all[i] = (struct proxy_field){ name, value, rule != VARIABLE_REPLACE };
	if (i == m->n)
		m->n++;
	return (true);
}

const struct request_variables *
request_variables(const struct request *r)
{
	return (request_slot(r, mine));
}
