/* server/request/variables.c -- the variables of a request for applications; see request.h. */
#include "server/request/request.h"

#include "wire/codec/message.h"

static size_t
find(const struct request *r, struct text name)
{
	size_t i = 0;

	while (i < r->nvariables && !text_eq(r->variables[i].name, name))
		i++;
	return (i);
}

bool
request_variable(struct request *r, struct text name, struct text value, enum variable_rule rule)
{
	struct proxy_field *all = (struct proxy_field *)(uintptr_t)r->variables;
	size_t i = find(r, name);

	if (i < r->nvariables && rule == VARIABLE_DEFAULT)
		return (true);
	if (i == VARIABLES_MAX || name.p == NULL || value.p == NULL)
		return (false);
	if (all == NULL) {
		all = arena_get(&r->arena, VARIABLES_MAX * sizeof(*all));
		if (all == NULL)
			return (false);
		r->variables = all;
	}
	all[i] = (struct proxy_field){ name, value, rule != VARIABLE_REPLACE };
	if (i == r->nvariables)
		r->nvariables++;
	return (true);
}
