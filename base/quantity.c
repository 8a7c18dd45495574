#include "base/quantity.h"

#include <glib.h>
#include <string.h>

bool
quantity_read(const char *text, uint64_t min, uint64_t max, uint64_t *n)
{
	static const char units[] = "kmg";
	size_t len = strlen(text);
	const char *unit = len > 1 ? strchr(units, g_ascii_tolower(text[len - 1])) : NULL;
	unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
	char *digits = g_strndup(text, unit != NULL ? len - 1 : len);
	guint64 value;
	bool good;

	/* glib takes a vertical tab in front of a number. */
	good = g_ascii_isdigit(text[0]) &&
	    g_ascii_string_to_unsigned(digits, 10, 0, UINT64_MAX >> shift, &value, NULL);
	g_free(digits);
	if (!good || value << shift < min || value << shift > max)
		return (false);
	*n = value << shift;
	return (true);
}
