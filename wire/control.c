#include "base/must.h"
#include "wire/control.h"

const struct control_row controls[CONTROLS] = {
#define C(id, name, value, asks, allowed, doc)                                            \
	[CONTROL_##id] = { { (name), sizeof(name) - 1 }, CONTROL_##value, CONTROL_##asks, \
		CONTROL_BY_##allowed, doc },
#define F(prefix)
#include "wire/controls.def"
#undef C
#undef F
};

static const struct text families[] = {
#define C(...)
#define F(prefix) { (prefix), sizeof(prefix) - 1 },
#include "wire/controls.def"
#undef C
#undef F
};

bool
header_is_control(struct text name)
{
	size_t i;

	if (name.n == 0 || (name.p[0] | 0x20) != 'x')
		return (false);
	for (i = 0; i < NELEM(families); i++)
		if (text_istarts(name, families[i]))
			return (true);
	return (false);
}

enum control
control_find(struct text name)
{
	enum control c;

	for (c = 0; c < CONTROLS; c++)
		if (text_ieq(controls[c].name, name))
			break;
	return (c);
}

enum control
control_answer(const struct text values[CONTROLS])
{
	enum control c;

	for (c = 0; c < CONTROLS; c++)
		if (controls[c].asks == CONTROL_ANSWER && values[c].p != NULL)
			break;
	return (c);
}

void
control_drop_answers(struct text values[CONTROLS])
{
	enum control c;

	while ((c = control_answer(values)) < CONTROLS)
		values[c] = TEXT_NONE;
}
