#include "files/warm/mode.h"

#include <glib.h>
#include <string.h>

#include "base/text.h"

#define BYTES_MAX (1ull << 50)

/* A server that sleeps in sendfile() is faster than each disk, so it finds the whole file in
 * memory, up to this size.  One that sends in threads may start when the turn of the file comes,
 * because the read-ahead is faster than a thread that waits for each page. */
#define AUTO_SIZE (16ull << 20)

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

bool
warm_mode_parse_auto(const char *text, struct warm_conf *conf)
{
	bool threads = strcmp(text, "auto:threads") == 0;

	conf->soon = 0;
	if (!threads && strcmp(text, "auto") != 0)
		return (warm_mode_parse(text, &conf->how, &conf->before));
	conf->how = WARM_READ;
	conf->before = threads ? 0 : AUTO_SIZE;
	conf->soon = AUTO_SIZE;
	return (true);
}
