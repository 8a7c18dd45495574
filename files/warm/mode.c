#include "files/warm/mode.h"

#include <glib.h>
#include <string.h>

#include "base/text.h"

#define BYTES_MAX (1ull << 50)

bool
warm_mode_parse(const char *text, enum warm_how *how, uint64_t *before)
{
	*how = WARM_READ;
	*before = WARM_ALL;
	if (strcmp(text, "stat") == 0)
		*how = WARM_STAT;
	else if (strcmp(text, "open") == 0)
		*how = WARM_OPEN;
	else if (strcmp(text, "read:all") != 0)
		return (g_str_has_prefix(text, "read:") &&
			text_size(text_of(text + strlen("read:")), 0, BYTES_MAX, before));
	return (true);
}
