/* server/config/control_name.c -- see control_name.h */
#include "server/config/control_name.h"

#include <glib.h>
#include <string.h>

const char *
control_name(const struct conf *c)
{
	const char *path = c->control_socket;
	const char *made;
	char *name;
	size_t n;

	if (path != NULL && strcmp(path, "disable") == 0)
		return (NULL);
	if (path != NULL && path[0] != '\0')
		name = g_strconcat("unix:", path, NULL);
	else if (c->pid_file != NULL && c->pid_file[0] != '\0') {
		n = strlen(c->pid_file);
		if (g_str_has_suffix(c->pid_file, ".pid"))
			n -= strlen(".pid");
		name = g_strdup_printf("unix:%.*s.ctl", (int)n, c->pid_file);
	} else
		return (NULL);
	made = g_intern_string(name);
	g_free(name);
	return (made);
}
