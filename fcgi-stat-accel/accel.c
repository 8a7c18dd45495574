#include "fcgi-stat-accel/accel.h"

#include <errno.h>
#include <string.h>

/* Empty counts as missing: servers pass variables they could not fill as empty ones. */
static const char *
param(char **params, const char *name)
{
	size_t n = strlen(name);

	for (; *params != NULL; params++)
		if (strncmp(*params, name, n) == 0 && (*params)[n] == '=')
			return ((*params)[n + 1] != '\0' ? *params + n + 1 : NULL);
	return (NULL);
}

static void
append_url_part(GString *path, const char *part)
{
	if (part == NULL)
		return;
	if (*part != '/')
		g_string_append_c(path, '/');
	g_string_append(path, part);
}

/* The root without the slashes at its end, then the name the server gave the handler. */
static void
document_path(char **params, GString *path)
{
	const char *root = param(params, "DOCUMENT_ROOT"), *name = param(params, "SCRIPT_NAME");

	if (root == NULL)
		return;
	g_string_assign(path, root);
	while (path->len > 0 && path->str[path->len - 1] == '/')
		g_string_truncate(path, path->len - 1);
	append_url_part(path, name);
}

/* lighttpd 1.4 splits the URL of a "/prefix/" handler: SCRIPT_FILENAME is then root +
 * SCRIPT_NAME and lacks the end, which is in PATH_INFO.  A SCRIPT_FILENAME that differs is
 * complete. */
static void
choose_path(char **params, GString *path)
{
	const char *warm = param(params, "WARM_PATH"), *file = param(params, "SCRIPT_FILENAME");

	g_string_truncate(path, 0);
	if (warm != NULL) {
		g_string_assign(path, warm);
		return;
	}
	document_path(params, path);
	if (file != NULL && (path->len == 0 || strcmp(file, path->str) != 0))
		g_string_assign(path, file);
	else if (path->len > 0)
		append_url_part(path, param(params, "PATH_INFO"));
}

static bool
is_control(char c)
{
	return ((unsigned char)c < 0x20 || c == 0x7f);
}

/* Raw, a control character would split the header, and a reader trims blanks at the end. */
static bool
fits_raw(const GString *path)
{
	for (size_t i = 0; i < path->len; i++)
		if (is_control(path->str[i]))
			return (false);
	return (path->str[path->len - 1] != ' ');
}

int
accel_path(const struct accel_conf *conf, char **params, GString *path)
{
	choose_path(params, path);
	if (path->str[0] != '/')
		return (-EPERM);
	if (path->str[path->len - 1] == '/')
		return (-EISDIR);
	if (conf->raw && !fits_raw(path))
		return (-EPERM);
	return (0);
}

/* ---------------------------------------------------------------- reply */

static int
status_of(int err)
{
	switch (err) {
	case 0:
		return (200);
	case EACCES:
	case EPERM:
	case ELOOP:
	case EXDEV:			/* openat2: outside of the root */
	case EISDIR:
	case ENXIO:			/* a socket, or a device without driver */
	case ENODEV:
		return (403);
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return (404);
	case EAGAIN:			/* a lease is being broken, or renames raced openat2 */
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ETIMEDOUT:
		return (503);
	}
	return (500);
}

static const char *
reason_of(int status)
{
	switch (status) {
	case 200: return ("OK");
	case 403: return ("Forbidden");
	case 404: return ("Not Found");
	case 503: return ("Service Unavailable");
	}
	return ("Internal Server Error");
}

static void
append_encoded(GString *out, const char *path)
{
	for (; *path != '\0'; path++)
		if (g_ascii_isalnum(*path) || strchr("-._~/", *path) != NULL)
			g_string_append_c(out, *path);
		else
			g_string_append_printf(out, "%%%02X", (unsigned char)*path);
}

static bool
param_is(char **params, const char *name, const char *value)
{
	const char *found = param(params, name);

	return (found != NULL && strcmp(found, value) == 0);
}

/* To an authorizer 200 means "go on"; the server then opens the file by its own name. */
static void
reply_file(const struct accel_conf *conf, char **params, const char *path, GString *reply)
{
	g_string_append(reply, "Status: 200 OK\r\n");
	if (!param_is(params, "FCGI_ROLE", "AUTHORIZER")) {
		g_string_append_printf(reply, "%s: ", conf->header);
		if (conf->raw)
			g_string_append(reply, path);
		else
			append_encoded(reply, path);
		g_string_append(reply, "\r\n");
	}
	g_string_append(reply, "\r\n");
}

/* Says nothing of the path: where files lie is nobody's business. */
static void
reply_error(char **params, int status, GString *reply)
{
	const char *reason = reason_of(status);

	g_string_append_printf(reply, "Status: %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: %zu\r\n", status, reason, strlen(reason) + 5);
	if (status == 503)
		g_string_append(reply, "Retry-After: 1\r\n");
	g_string_append(reply, "\r\n");
	if (!param_is(params, "REQUEST_METHOD", "HEAD"))
		g_string_append_printf(reply, "%d %s\n", status, reason);
}

void
accel_reply(const struct accel_conf *conf, char **params, const char *path, int result,
    GString *reply)
{
	int status = status_of(-result);

	if (status == 200)
		reply_file(conf, params, path, reply);
	else
		reply_error(params, status, reply);
}

bool
accel_header_valid(const char *name)
{
	if (*name == '\0')
		return (false);
	for (; *name != '\0'; name++)
		if (!g_ascii_isalnum(*name) && strchr("!#$%&'*+-.^_`|~", *name) == NULL)
			return (false);
	return (true);
}
