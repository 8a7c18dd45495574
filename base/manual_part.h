/* base/manual_part.h -- sections that the manual pages of fcgi-stat-accel and accel-warm have in common. */
#ifndef BASE_MANUAL_PART_H
#define BASE_MANUAL_PART_H

#include <glib.h>

#include "base/manpage.h"

struct manual_said {
	const char *term, *prose;
};

void manual_options(struct manpage *, const GOptionEntry *);	/* OPTIONS, without the hidden ones; .long_name NULL at the end */
void manual_section(struct manpage *, const char *heading, const struct manual_said *);	/* .term NULL at the end */

#endif
