/* base/short_values.h -- "-j16", "-r/srv/www": getopt(3) takes a value in the same word, glib does not. */
#ifndef BASE_SHORT_VALUES_H
#define BASE_SHORT_VALUES_H

#include <glib.h>

/* A copy of argv with such words cut in two, up to "--"; g_strfreev() it. */
char **short_values_apart(char **argv, const GOptionEntry *);

#endif
