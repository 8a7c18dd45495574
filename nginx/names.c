/* nginx/names.c -- the names that nginx will look up for a request, in its order.
 *
 *     try_files      each until one is there (before the content phase)
 *     URI of a directory:  index files until one is there; else the directory, and for a
 *                          listing all in it
 *     URI of a file:       its compressed siblings until one is there; else the file
 *
 * The next name is formed when the one before it is known. */
#include "nginx/stat_accel.h"

enum name_group { END, TRY, INDEX, DIRECTORY, LISTING, SIBLING, FILE_ITSELF };

void
accel_names_try(struct accel_names *n)
{
	*n = (struct accel_names){ .group = TRY };
}

void
accel_names_content(struct accel_names *n, const ngx_http_request_t *r)
{
	bool dir = r->uri.len > 0 && r->uri.data[r->uri.len - 1] == '/';

	*n = (struct accel_names){ .group = dir ? INDEX : SIBLING };
}

/* ---------------------------------------------------------------- what will be sent */

/* One range "bytes=A-B", "bytes=A-" or "bytes=-N".  For all else the whole file counts. */
static struct accel_range
range_of(const ngx_http_request_t *r)
{
	struct accel_range whole = { 0, NGX_MAX_OFF_T_VALUE, false }, range = whole;
	const ngx_table_elt_t *h = r->headers_in.range;
	u_char *p, *dash, *end;

	if (r->method == NGX_HTTP_HEAD)
		return ((struct accel_range){ 0, 0, true });
	if (r != r->main || h == NULL || r->headers_in.if_range != NULL || h->value.len < 7 ||
	    ngx_strncasecmp(h->value.data, (u_char *)"bytes=", 6) != 0)
		return (whole);
	p = h->value.data + 6;
	end = h->value.data + h->value.len;
	dash = ngx_strlchr(p, end, '-');
	if (dash == NULL)
		return (whole);
	range.partial = true;
	if (dash > p)
		range.from = ngx_atoof(p, (size_t)(dash - p));
	if (dash + 1 < end)
		range.to = ngx_atoof(dash + 1, (size_t)(end - dash - 1));
	if (range.from == NGX_ERROR || range.to == NGX_ERROR)
		return (whole);
	if (dash == p)
		return ((struct accel_range){ -range.to, NGX_MAX_OFF_T_VALUE, true });
	range.to += range.to < NGX_MAX_OFF_T_VALUE;
	return (range);
}

/* ---------------------------------------------------------------- paths */

/* nginx's own mapping, with room for more bytes after it. */
static ngx_int_t
map_uri(ngx_http_request_t *r, ngx_str_t *path, size_t *root, size_t room)
{
	u_char *end = ngx_http_map_uri_to_path(r, path, root, room);

	if (end == NULL)
		return (NGX_ERROR);
	path->len = (size_t)(end - path->data);
	return (NGX_OK);
}

static void
append(ngx_str_t *path, const ngx_str_t *more)
{
	*ngx_cpymem(path->data + path->len, more->data, more->len) = '\0';
	path->len += more->len;
}

/* As try_files: the value stands in the place of the URI, below root or alias. */
static ngx_int_t
try_path(ngx_http_request_t *r, const struct accel_try *t, ngx_str_t *path)
{
	ngx_http_core_loc_conf_t *clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
	size_t alias = clcf->alias == NGX_MAX_SIZE_T_VALUE ? 0 : clcf->alias, root;
	ngx_http_complex_value_t value = t->value;
	ngx_str_t name;

	if (ngx_http_complex_value(r, &value, &name) != NGX_OK ||
	    map_uri(r, path, &root, name.len + 1) != NGX_OK)
		return (NGX_ERROR);
	if (alias != 0 && value.lengths != NULL && name.len >= alias &&
	    ngx_strncmp(name.data, r->uri.data, alias) == 0) {
		name.data += alias;
		name.len -= alias;
	}
	path->len = root;
	append(path, &name);
	return (NGX_OK);
}

static ngx_int_t
file_path(ngx_http_request_t *r, const ngx_str_t *suffix, ngx_str_t *path)
{
	size_t root;

	if (map_uri(r, path, &root, suffix->len + 1) != NGX_OK)
		return (NGX_ERROR);
	append(path, suffix);
	return (NGX_OK);
}

static ngx_int_t
index_path(ngx_http_request_t *r, ngx_http_complex_value_t *index, ngx_str_t *path)
{
	ngx_str_t name;

	if (ngx_http_complex_value(r, index, &name) != NGX_OK)
		return (NGX_ERROR);
	return (file_path(r, &name, path));
}

/* ---------------------------------------------------------------- one after the other */

/* As the modules ask: zstd_static, brotli_static, gzip_static. */
static const struct suffix {
	ngx_str_t suffix;
	const char *coding;
} suffixes[ACCEL_SUFFIXES] = {
	{ ngx_string(".zst"), "zstd" },
	{ ngx_string(".br"), "br" },
	{ ngx_string(".gz"), "gzip" },
};

static bool
is_accepted(const ngx_http_request_t *r, const char *coding)
{
	const ngx_table_elt_t *h = r->headers_in.accept_encoding;

	return (h != NULL &&
		ngx_strcasestrn(h->value.data, (char *)coding, ngx_strlen(coding) - 1) != NULL);
}

static bool
may_be_sent(const ngx_http_request_t *r, const struct accel_conf *conf, ngx_uint_t i)
{
	return (conf->suffix_use[i] == ACCEL_SUFFIX_ALWAYS ||
		(conf->suffix_use[i] == ACCEL_SUFFIX_ON && is_accepted(r, suffixes[i].coding)));
}

static void
next_group(struct accel_names *n, const struct accel_conf *conf)
{
	switch (n->group) {
	case INDEX: n->group = DIRECTORY; break;
	case DIRECTORY: n->group = conf->listing ? LISTING : END; break;
	case SIBLING: n->group = FILE_ITSELF; break;
	default: n->group = END;
	}
	n->at = 0;
}

/* NGX_DECLINED: this group has no more. */
static ngx_int_t
next_of_group(ngx_http_request_t *r, const struct accel_conf *conf, struct accel_names *n,
    struct accel_name *name)
{
	static const ngx_str_t none = ngx_null_string;
	const struct accel_try *tries = conf->tries != NULL ? conf->tries->elts : NULL;
	ngx_http_complex_value_t *indexes = conf->indexes->elts;

	switch (n->group) {
	case TRY:
		if (n->at >= conf->tries->nelts)
			return (NGX_DECLINED);
		n->wants_dir = tries[n->at].dir;
		return (try_path(r, &tries[n->at], &name->path));
	case INDEX:
		/* an absolute one is not looked for: it is another URI */
		if (n->at >= conf->indexes->nelts || indexes[n->at].value.data[0] == '/')
			return (NGX_DECLINED);
		return (index_path(r, &indexes[n->at], &name->path));
	case SIBLING:
		while (n->at < ACCEL_SUFFIXES && !may_be_sent(r, conf, n->at))
			n->at++;
		if (n->at == ACCEL_SUFFIXES)
			return (NGX_DECLINED);
		return (file_path(r, &suffixes[n->at].suffix, &name->path));
	case DIRECTORY:
		if (n->at > 0 || file_path(r, &none, &name->path) != NGX_OK)
			return (NGX_DECLINED);
		name->path.data[--name->path.len] = '\0'; /* the slash */
		return (name->path.len > 0 ? NGX_OK : NGX_DECLINED);
	default:
		name->list = n->group == LISTING;
		return (n->at == 0 ? file_path(r, &none, &name->path) : NGX_DECLINED);
	}
}

ngx_int_t
accel_name_next(ngx_http_request_t *r, const struct accel_conf *conf, struct accel_names *n,
    struct accel_name *name)
{
	ngx_int_t rc = NGX_DECLINED;

	*name = (struct accel_name){ .range = range_of(r) };
	while (n->group != END && rc == NGX_DECLINED) {
		rc = next_of_group(r, conf, n, name);
		if (rc == NGX_DECLINED)
			next_group(n, conf);
	}
	return (rc);
}

void
accel_name_seen(struct accel_names *n, enum accel_kind kind)
{
	bool found = kind == ACCEL_FILE || kind == ACCEL_DIR;

	if (n->group == TRY)
		found = kind == (n->wants_dir ? ACCEL_DIR : ACCEL_FILE);
	if (n->group == DIRECTORY)
		found = false; /* a listing may follow */
	if (n->group == SIBLING)
		found = kind == ACCEL_FILE;
	n->at++;
	if (found)
		n->group = END;
}
