#include "fcgi-stat-accel/accel.h"

#include <errno.h>
#include <string.h>

#include "wire/urlpath.h"

#define PAGE 4096ull
/* The URI of nginx's subrequest in every example.  A name that ends so is that of the subrequest,
 * not of the requested file. */
#define QUESTION "/stat-accel"

/* Empty counts as missing: servers pass unset variables as empty ones. */
const char *
accel_param(char **params, const char *name)
{
	size_t n = strlen(name);

	for (; *params != NULL; params++)
		if (strncmp(*params, name, n) == 0 && (*params)[n] == '=')
			return ((*params)[n + 1] != '\0' ? *params + n + 1 : NULL);
	return (NULL);
}

const char **
accel_variables(const struct accel_conf *conf)
{
	static const char *const always[] = {
		"REQUEST_METHOD", "REQUEST_URI", "QUERY_STRING", "HTTP_RANGE", "HTTP_IF_RANGE",
		"WARM_PATH", "SCRIPT_FILENAME", "DOCUMENT_ROOT", "SCRIPT_NAME", "PATH_INFO",
		"WARM_CACHE_KEY", "WARM_CACHE", "WARM_LATE", "WARM_OPEN",
		"REMOTE_ADDR", /* the client's row, see conn_request.c */
	};
	GPtrArray *all = g_ptr_array_new();

	for (size_t i = 0; i < G_N_ELEMENTS(always); i++)
		g_ptr_array_add(all, (gpointer)always[i]);
	for (const char *const *p = conf->path_from; p != NULL && *p != NULL; p++)
		g_ptr_array_add(all, (gpointer)*p);
	g_ptr_array_add(all, NULL);
	return ((const char **)g_ptr_array_free(all, FALSE));
}

/* ---------------------------------------------------------------- variables with the path */

static bool
is_question(const struct accel_conf *conf, const char *name)
{
	return (conf->mode == MODE_AUTH && name != NULL && g_str_has_suffix(name, QUESTION));
}

/* The value of a variable that names the requested file, else NULL. */
static const char *
name_param(const struct accel_conf *conf, char **params, const char *name)
{
	const char *value = accel_param(params, name);

	return (is_question(conf, value) ? NULL : value);
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

/* The root without trailing slashes.  False: there is none. */
static bool
root_path(char **params, GString *path)
{
	const char *root = accel_param(params, "DOCUMENT_ROOT");

	if (root == NULL)
		return (false);
	g_string_assign(path, root);
	while (path->len > 0 && path->str[path->len - 1] == '/')
		g_string_truncate(path, path->len - 1);
	return (true);
}

/* The root, then the name of the handler. */
static void
document_path(char **params, GString *path)
{
	if (root_path(params, path))
		append_url_part(path, accel_param(params, "SCRIPT_NAME"));
}

/* The root, then the path that the client has sent: decoded, without the query, cleaned.  nginx
 * refuses requests for other paths itself, and its parser ends a path at '#', too. */
static void
requested_path(char **params, GString *path)
{
	const char *uri = accel_param(params, "REQUEST_URI");
	struct text target;
	size_t at;
	int n;

	if (uri == NULL || !root_path(params, path))
		return;
	target = (struct text){ uri, strcspn(uri, "?#") };
	at = path->len;
	g_string_set_size(path, at + target.n);
	n = urlpath_name(target, path->str + at);
	g_string_truncate(path, n < 0 ? 0 : at + (size_t)n);
}

/* Apache's mod_proxy_fcgi prefixes the address of the application:
 * "proxy:fcgi://localhost:9000/srv/a". */
static const char *
without_proxy(const char *file)
{
	const char *slash;

	if (!g_str_has_prefix(file, "proxy:"))
		return (file);
	slash = strstr(file, "://");
	slash = slash != NULL ? strchr(slash + 3, '/') : NULL;
	return (slash != NULL ? slash : file);
}

/* lighttpd 1.4 splits the URL of a "/prefix/" handler: SCRIPT_FILENAME is then root + SCRIPT_NAME
 * and lacks the end, which is in PATH_INFO.  A SCRIPT_FILENAME that differs is complete. */
static void
script_path(char **params, const char *file, GString *path)
{
	document_path(params, path);
	if (file != NULL && (path->len == 0 || strcmp(file, path->str) != 0))
		g_string_assign(path, without_proxy(file));
	else if (path->len > 0)
		append_url_part(path, accel_param(params, "PATH_INFO"));
}

/* Names of the file first: after a rewrite REQUEST_URI is another one.  In nginx's subrequest only
 * REQUEST_URI is about the request of the client. */
static void
usual_path(const struct accel_conf *conf, char **params, GString *path)
{
	const char *warm = name_param(conf, params, "WARM_PATH"),
		   *file = name_param(conf, params, "SCRIPT_FILENAME"),
		   *script = accel_param(params, "SCRIPT_NAME");

	if (warm != NULL)
		g_string_assign(path, warm);
	else if (file == NULL && (script != NULL ? is_question(conf, script)
						 : accel_param(params, "PATH_INFO") == NULL))
		requested_path(params, path);
	else
		script_path(params, file, path);
}

static void
path_from(const char *const *names, char **params, GString *path)
{
	const char *value;

	for (; *names != NULL && path->len == 0; names++) {
		value = accel_param(params, *names);
		if (strcmp(*names, "REQUEST_URI") == 0)
			requested_path(params, path);
		else if (strcmp(*names, "DOCUMENT") == 0) {
			document_path(params, path);
			if (path->len > 0)
				append_url_part(path, accel_param(params, "PATH_INFO"));
		} else if (value != NULL)
			g_string_assign(path, without_proxy(value));
	}
}

/* ---------------------------------------------------------------- names in the header */

/* An unencoded control character would split the header, and a reader trims blanks at the end. */
static bool
fits_raw(const GString *path)
{
	return (!text_has_control((struct text){ path->str, path->len }) &&
		path->str[path->len - 1] != ' ');
}

static bool
fits(const struct accel_conf *conf, const GString *path)
{
	if (conf->utf8 && !g_utf8_validate(path->str, (gssize)path->len, NULL))
		return (false);
	return (!conf->raw || fits_raw(path));
}

/* ---------------------------------------------------------------- requested ranges */

static const struct range_set all = { 1, { { 0, UINT64_MAX } } };

static void
whole_pages(struct range_part *p)
{
	if (p->from != RANGE_TAIL)
		p->from &= ~(PAGE - 1);
	p->to = p->to > UINT64_MAX - PAGE ? UINT64_MAX : (p->to + PAGE - 1) & ~(PAGE - 1);
}

/* HEAD: none.  GET with HTTP_RANGE and without HTTP_IF_RANGE: those of HTTP_RANGE.  Otherwise the
 * whole file, which is also what the server may send with HTTP_IF_RANGE.  Ranges are rounded to
 * whole pages, so that neighbours share an answer. */
static void
wanted_ranges(char **params, struct range_set *want)
{
	const char *method = accel_param(params, "REQUEST_METHOD"),
		   *range = accel_param(params, "HTTP_RANGE");

	*want = all;
	if (method != NULL && strcmp(method, "HEAD") == 0) {
		want->n = 0;
		return;
	}
	if (range == NULL || accel_param(params, "HTTP_IF_RANGE") != NULL ||
	    !range_set_read(text_of(range), want)) {
		*want = all;
		return;
	}
	for (unsigned i = 0; i < want->n; i++)
		whole_pages(&want->part[i]);
}

bool
accel_wants_all(char **params)
{
	struct range_set want;

	wanted_ranges(params, &want);
	return (want.n == 1 && want.part[0].from == 0 && want.part[0].to == UINT64_MAX);
}

/* ---------------------------------------------------------------- nginx's cache */

static const char *
cache_key(const struct accel_conf *conf, char **params)
{
	return (conf->caches != NULL ? accel_param(params, "WARM_CACHE_KEY") : NULL);
}

static int
cache_path(const struct accel_conf *conf, char **params, GString *path, struct range_set *want)
{
	const struct nginx_cache *c =
	    nginx_cache_find(conf->caches, accel_param(params, "WARM_CACHE"));

	if (c == NULL)
		return (-ENODEV);
	nginx_cache_file(c, cache_key(conf, params), path);
	nginx_cache_ranges(want);
	return (0);
}

bool
accel_is_cached(const struct accel_conf *conf, char **params)
{
	return (cache_key(conf, params) != NULL);
}

int
accel_path(const struct accel_conf *conf, char **params, GString *path, struct range_set *want)
{
	g_string_truncate(path, 0);
	wanted_ranges(params, want);
	if (accel_is_cached(conf, params))
		return (cache_path(conf, params, path, want));
	if (conf->path_from != NULL)
		path_from(conf->path_from, params, path);
	else
		usual_path(conf, params, path);
	if (path->str[0] != '/')
		return (-EPERM);
	return (accel_is_auth(conf, params) || fits(conf, path) ? 0 : -EPERM);
}
