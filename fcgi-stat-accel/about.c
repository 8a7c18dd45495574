#include "fcgi-stat-accel/about.h"

#include <string.h>

#include "base/buf.h"
#include "fcgi-stat-accel/accel.h"

/* ,"NAME":["A","B"]; an empty list for none */
static void
list_json(struct buf *out, const char *name, const char *const *list)
{
	buf_printf(out, ",\n\"%s\":[", name);
	for (const char *const *p = list; p != NULL && *p != NULL; p++) {
		buf_str(out, p != list ? "," : "");
		buf_json(out, text_of(*p));
	}
	buf_str(out, "]");
}

static void
as_json(struct buf *out, const struct accel_conf *accel, const struct warm_conf *warm)
{
	buf_printf(out, "{\"program\":\"fcgi-stat-accel\",\"version\":\"%s\",\"mode\":\"%s\"",
	    STAT_ACCEL_VERSION, accel->mode == MODE_AUTH ? "auth" : "sendfile");
	buf_str(out, ",\n\"header\":");
	buf_json(out, text_of(accel->header));
	list_json(out, "roots", warm->roots);
	list_json(out, "index", warm->index);
	list_json(out, "path_from", accel->path_from);
	buf_str(out, "}\n");
}

bool
about_answer(const struct accel_conf *accel, const struct warm_conf *warm, char **params,
    GString *reply)
{
	const char *name = accel_param(params, "SCRIPT_NAME");
	struct buf page;

	if (accel == NULL || name == NULL || strcmp(name, ABOUT_NAME) != 0)
		return (false);
	buf_init(&page, 0);
	as_json(&page, accel, warm);
	g_string_append_printf(reply,
	    "Status: 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
	    buf_as_text(&page).n);
	g_string_append_len(reply, buf_as_text(&page).p, (gssize)buf_as_text(&page).n);
	buf_free(&page);
	return (true);
}
