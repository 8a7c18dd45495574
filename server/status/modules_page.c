/* server/status/modules_page.c -- status.config-url: the version, the modules and the ways to send
 * files that this server has.  The page shows no setting: values may be secret, and accel-server -p
 * prints them.
 */
#include <string.h>
#include "io/file.h"
#include "server/config/config.h"
#include "server/status/status.h"

void
status_modules(struct buf *out, const struct status *s)
{
	const struct file_backend *const *b;
	const struct known_module *m;

	buf_printf(out,
	    "server: accel-server/%s\nworkers: %zu\nnetwork-backends:", STAT_ACCEL_VERSION,
	    s->nworkers);
	for (b = file_backends; *b != NULL; b++)
		buf_printf(out, " %s", (*b)->name);
	buf_str(out, "\nmodules:");
	for (m = known_modules; m->name != NULL; m++)
		if ((m == known_modules || strcmp(m->name, m[-1].name) != 0) &&
		    known_module_kind(text_of(m->name)).kind == KIND_HONOURED &&
		    text_starts(text_of(m->name), TEXT("mod_")))
			buf_printf(out, " %s", m->name);
	buf_char(out, '\n');
}
