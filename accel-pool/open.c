#include "accel-pool/open.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sysexits.h>
#include <unistd.h>

#include "walk/report.h"

static int
why(int err, const char **text)
{
	switch (err) {
	case -ENOENT: *text = "is not a pool: it has no file " MARKER; return (EX_DATAERR);
	case -EPROTO: *text = "its file " MARKER " is not one of accel-pool"; return (EX_DATAERR);
	case -EAGAIN: *text = "another run of accel-pool changes this pool"; return (EX_TEMPFAIL);
	default: *text = g_strerror(-err); return (EX_NOINPUT);
	}
}

int
pool_say(const char *dir, int code, const char *text)
{
	struct buf b;

	buf_init(&b, 0);
	buf_log_quoted(&b, text_of(dir));
	buf_char(&b, '\0');
	walk_message("\"%s\": %s", b.p, text);
	buf_free(&b);
	return (code);
}

int
pool_dir_open(const char *name, bool change, int *dirp, struct marker *pool)
{
	int dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err, code;
	const char *text;

	if (dir < 0)
		return (pool_say(name, EX_NOINPUT, g_strerror(errno)));
	err = change ? marker_lock(dir) : 0;
	if (err == 0)
		err = marker_read(dir, pool);
	if (err == 0) {
		*dirp = dir;
		return (0);
	}
	close(dir);
	code = why(err, &text);
	return (pool_say(name, code, text));
}
