#include "fcgi-stat-accel/accel.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "wire/http1/http1.h"
#include "wire/http1/http_date.h"
#include "wire/http1/validate.h"

static void
count_error(struct accel_counters *counters, int status)
{
	switch (status) {
	case 403: count(&counters->events, forbidden); break;
	case 404: count(&counters->events, not_found); break;
	case 431: count(&counters->events, too_long); break;
	case 503: count(&counters->events, unavailable); break;
	default: count(&counters->events, failed); break;
	}
}

/* ---------------------------------------------------------------- the name in the header */

static void
append_name(const struct accel_conf *conf, const char *name, GString *out)
{
	if (conf->raw)
		g_string_append(out, name);
	else
		g_string_append_uri_escaped(out, name, "/", FALSE);
}

/* Whole segments only: /srv/www does not match /srv/wwwroot. */
static bool
map_fits(const struct accel_map *m, const char *path)
{
	size_t n = strlen(m->from);

	if (strncmp(path, m->from, n) != 0)
		return (false);
	return (path[n] == '/' || path[n] == '\0' || (n > 0 && m->from[n - 1] == '/'));
}

static const struct accel_map *
map_of(const struct accel_map *maps, const char *path)
{
	const struct accel_map *best = NULL;

	for (; maps->from != NULL; maps++)
		if (map_fits(maps, path) &&
		    (best == NULL || strlen(maps->from) > strlen(best->from)))
			best = maps;
	return (best);
}

/* False: no --map matches, so the server has no URI for the path.  The URI of a map is sent
 * unchanged: it may be a whole URL. */
static bool
append_file(const struct accel_conf *conf, const char *path, GString *out)
{
	const struct accel_map *m;

	if (conf->maps == NULL) {
		append_name(conf, path, out);
		return (true);
	}
	m = map_of(conf->maps, path);
	if (m == NULL)
		return (false);
	g_string_append(out, m->to);
	append_name(conf, path + strlen(m->from), out);
	return (true);
}

/* ---------------------------------------------------------------- validators */

static void
append_date(GString *out, const char *name, int64_t when)
{
	char date[HTTP_DATE_LEN + 1];

	if (when < 0)
		return;
	http_date_put(date, (uint64_t)when);
	g_string_append_printf(out, "%s: %s\r\n", name, date);
}

/* The tag of accel-server: size and time of change, so a file on two machines has the same tag.
 * A file that changed a moment ago gets no tag: its next change could leave the same times, and the
 * old tag would match the new contents. */
static void
append_etag(GString *out, const struct warm_found *found)
{
	char tag[ETAG_MAX];
	size_t n = etag_make(tag, &found->stx, ETAG_SIZE | ETAG_MTIME, 0);

	if (found->settled)
		g_string_append_printf(out, "ETag: %.*s\r\n", (int)n, tag);
}

static void
append_validators(const struct accel_conf *conf, const struct warm_found *found, GString *out)
{
	const struct statx *stx = &found->stx;

	if (conf->etag)
		append_etag(out, found);
	if (conf->last_modified)
		append_date(out, "Last-Modified", stx->stx_mtime.tv_sec);
	if (conf->expires >= 0) {
		append_date(out, "Expires", time(NULL) + conf->expires);
		g_string_append_printf(out, "Cache-Control: max-age=%d\r\n", conf->expires);
	}
}

/* ---------------------------------------------------------------- replies */

static bool
param_is(char **params, const char *name, const char *value)
{
	const char *found = accel_param(params, name);

	return (found != NULL && strcmp(found, value) == 0);
}

static bool
is_authorizer(char **params)
{
	return (param_is(params, "FCGI_ROLE", "AUTHORIZER"));
}

bool
accel_is_auth(const struct accel_conf *conf, char **params)
{
	return (conf->mode == MODE_AUTH || is_authorizer(params) || accel_is_cached(conf, params));
}

/* The path is not mentioned: clients need not know where files are. */
static void
reply_error(char **params, int status, GString *reply)
{
	const char *reason = http1_reason(status);

	g_string_append_printf(reply,
	    "Status: %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
	    "Content-Length: %zu\r\n",
	    status, reason, strlen(reason) + 5);
	if (status == 503)
		g_string_append(reply, "Retry-After: 1\r\n");
	g_string_append(reply, "\r\n");
	if (!param_is(params, "REQUEST_METHOD", "HEAD"))
		g_string_append_printf(reply, "%d %s\n", status, reason);
}

/* A web server may keep an answer (fastcgi_cache, Lua), and takes it for the next GET: not one for
 * a file that is still cold in whole or in part (HEAD, Range), and not one for a file of its cache
 * that appears a moment later. */
static bool
may_be_kept(const struct accel_conf *conf, char **params, int err)
{
	return (!conf->no_store && lookup_is_permanent(err) &&
		(err == 0 ? accel_wants_all(params) : !accel_is_cached(conf, params)));
}

/* An authorizer grants with status 200 and hands variables on (FastCGI, 6.3).  nginx's auth_request
 * takes any 2xx and needs no body. */
static void
reply_go_on(const struct accel_conf *conf, char **params, int err, GString *reply)
{
	bool authorizer = is_authorizer(params);

	g_string_append(reply, authorizer ? "Status: 200 OK\r\n" : "Status: 204 No Content\r\n");
	if (!may_be_kept(conf, params, err))
		g_string_append(reply,
		    authorizer ? "Variable-WARM_NO_STORE: 1\r\n" : "Cache-Control: no-store\r\n");
	g_string_append(reply, "\r\n");
}

/* Appends the head of a reply that names the file.  False: the file has no URI, and nothing is
 * appended. */
static bool
reply_file(const struct accel_conf *conf, const char *path, const struct warm_found *found,
    GString *reply)
{
	GString *name = g_string_new(path);
	size_t start = reply->len;
	bool known;

	if (found->index != NULL) {
		if (name->str[name->len - 1] != '/')
			g_string_append_c(name, '/');
		g_string_append(name, found->index);
	}
	g_string_append_printf(reply,
	    "Status: %s\r\n%s: ", conf->status_307 ? "307 Temporary Redirect" : "200 OK",
	    conf->header);
	known = append_file(conf, name->str, reply);
	g_string_append(reply, "\r\n");
	append_validators(conf, found, reply);
	g_string_append(reply, "\r\n");
	if (!known)
		g_string_truncate(reply, start);
	g_string_free(name, TRUE);
	return (known);
}

/* For a directory without a slash at its end: links of its index file would lead one level too
 * high.  Two slashes at the beginning would name another host. */
static bool
redirect(char **params, const char *path, const struct warm_found *found, GString *reply)
{
	const char *uri = accel_param(params, "REQUEST_URI");
	size_t n = uri != NULL ? strcspn(uri, "?") : 0;

	if (found->index == NULL || n == 0 || uri[0] != '/' || uri[n - 1] == '/' ||
	    g_str_has_suffix(path, "/"))
		return (false);
	while (uri[1] == '/') {
		uri++;
		n--;
	}
	for (const char *p = uri; *p != '\0'; p++)
		if (g_ascii_iscntrl(*p) || *p == ' ' || *p == '\\')
			return (false);
	g_string_append_printf(reply,
	    "Status: 301 Moved Permanently\r\nLocation: %.*s/%s\r\nContent-Length: 0\r\n\r\n",
	    (int)n, uri, uri + n);
	return (true);
}

static bool
goes_on(const struct accel_conf *conf, char **params, int status)
{
	bool strict = conf->late_503 || param_is(params, "WARM_LATE", "503");

	return (accel_is_auth(conf, params) && !(status == 503 && strict));
}

void
accel_reply(const struct accel_conf *conf, char **params, const char *path,
    const struct warm_found *found, struct accel_counters *counters, GString *reply)
{
	/* E2BIG: too many variables */
	int status = found->err == -E2BIG ? 431 : http1_status_of_errno(found->err);

	if (goes_on(conf, params, status)) {
		count(&counters->events, go_on);
		reply_go_on(conf, params, found->err, reply);
		return;
	}
	if (status == 200 && redirect(params, path, found, reply)) {
		count(&counters->events, redirects);
		return;
	}
	if (status == 200 && reply_file(conf, path, found, reply)) {
		count(&counters->events, files);
		return;
	}
	status = status == 200 ? 403 : status;
	count_error(counters, status);
	reply_error(params, status, reply);
}

/* ---------------------------------------------------------------- descriptors */

bool
accel_wants_fd(char **params)
{
	return (param_is(params, "WARM_OPEN", "1"));
}

/* Not: errors of this process and its limits, and paths that only its rules refuse. */
bool
accel_is_of_file(int err)
{
	switch (-err) {
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case ELOOP:
	case ENAMETOOLONG:
	case EIO: return (true);
	}
	return (false);
}

void
accel_add_errno(GString *reply, int err)
{
	char line[32];
	const char *end = strstr(reply->str, "\r\n");

	must(end != NULL);
	g_snprintf(line, sizeof(line), "Warm-Errno: %d\r\n", -err);
	g_string_insert(reply, end + 2 - reply->str, line);
}
