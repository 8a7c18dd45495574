#include "base/short_values.h"

#include <stdbool.h>
#include <string.h>

static bool
takes_value(const GOptionEntry *e, char letter)
{
	for (; e->long_name != NULL; e++)
		if (e->short_name == letter)
			return (e->arg != G_OPTION_ARG_NONE && e->arg != G_OPTION_ARG_CALLBACK);
	return (false);
}

char **
short_values_apart(char **argv, const GOptionEntry *entries)
{
	GPtrArray *words = g_ptr_array_new();
	bool more = true;

	for (; *argv != NULL; argv++) {
		const char *w = *argv;

		more &= strcmp(w, "--") != 0;
		if (more && w[0] == '-' && w[1] != '\0' && w[1] != '-' && w[2] != '\0' && takes_value(entries, w[1])) {
			g_ptr_array_add(words, g_strndup(w, 2));
			w += 2;
		}
		g_ptr_array_add(words, g_strdup(w));
	}
	g_ptr_array_add(words, NULL);
	return ((char **)g_ptr_array_free(words, FALSE));
}
