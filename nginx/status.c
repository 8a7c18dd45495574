/* nginx/status.c -- stat_accel_status: a page with the counters of all workers.
 *
 *     stat_accel_status;                    nginx.requests.hot: 17
 *     ... json;   /page?json                {"workers":2, ... "nginx.requests.hot":17, ...}
 *     ... prometheus;   /page?prometheus    nginx_stat_accel_requests_hot_total 17 */
#include "nginx/stat_accel.h"

#define ROW_MAX 512u /* of a page, without the name of an accelerator */

struct accel_page {
	ngx_str_t word, type;
	void (
	    *write)(ngx_buf_t *b, const struct accel_main_conf *mcf, const struct accel_sums *sums);
};

static const struct counter_row {
	const char *dotted, *doc;
} rows[] = {
#define C(name, dotted, doc) { dotted, doc },
#include "nginx/counters.def"
#undef C
};

static const char out_doc[] = "Questions that are out now.";
static const char workers_doc[] = "Workers with this configuration.";
static const char down_doc[] = "Workers that found the accelerator down; they ask it again.";

/* Bounded: the buffer has room for all rows. */
static void
print(ngx_buf_t *b, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	b->last = ngx_vslprintf(b->last, b->end, format, args);
	va_end(args);
}

/* Text of the configuration, for a string of JSON or a label. */
static void
print_quoted(ngx_buf_t *b, const ngx_str_t *text)
{
	print(b, "\"");
	b->last = (u_char *)ngx_escape_json(b->last, text->data, text->len);
	print(b, "\"");
}

static ngx_uint_t
peers_shown(const struct accel_main_conf *mcf)
{
	return (mcf->peers != NULL ? ngx_min(mcf->peers->nelts, ACCEL_PEERS_SHOWN) : 0);
}

static const ngx_str_t *
peer_name(const struct accel_main_conf *mcf, ngx_uint_t i)
{
	return (&((struct accel_peer **)mcf->peers->elts)[i]->name);
}

/* ---------------------------------------------------------------- the forms of a page */

static void
as_text(ngx_buf_t *b, const struct accel_main_conf *mcf, const struct accel_sums *sums)
{
	print(b, "nginx.workers: %ui\nnginx.questions.out: %ui\n", sums->workers, sums->out);
	for (ngx_uint_t i = 0; i < ACCEL_COUNTERS; i++)
		print(b, "nginx.%s: %uL\n", rows[i].dotted, sums->counts[i]);
	for (ngx_uint_t i = 0; i < peers_shown(mcf); i++)
		print(b, "nginx.accelerator.%V.down-workers: %ui\n", peer_name(mcf, i),
		    sums->down[i]);
}

static void
as_json(ngx_buf_t *b, const struct accel_main_conf *mcf, const struct accel_sums *sums)
{
	print(b, "{\"workers\":%ui,\"questions_out\":%ui,\n\"accelerators\":[", sums->workers,
	    sums->out);
	for (ngx_uint_t i = 0; i < peers_shown(mcf); i++) {
		print(b, "%s{\"name\":", i > 0 ? ",\n" : "");
		print_quoted(b, peer_name(mcf, i));
		print(b, ",\"up\":%s,\"down_workers\":%ui}", sums->down[i] > 0 ? "false" : "true",
		    sums->down[i]);
	}
	print(b, "],\n\"counters\":{");
	for (ngx_uint_t i = 0; i < ACCEL_COUNTERS; i++)
		print(b, "%s\"nginx.%s\":%uL", i > 0 ? ",\n" : "", rows[i].dotted, sums->counts[i]);
	print(b, "}}\n");
}

#define PREFIX "nginx_stat_accel_"

static void
family(ngx_buf_t *b, const char *name, const char *type, const char *doc)
{
	print(b, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, doc, name, type);
}

static void
as_metrics(ngx_buf_t *b, const struct accel_main_conf *mcf, const struct accel_sums *sums)
{
	char name[64], *c;

	family(b, "workers", "gauge", workers_doc);
	print(b, PREFIX "workers %ui\n", sums->workers);
	family(b, "questions_out", "gauge", out_doc);
	print(b, PREFIX "questions_out %ui\n", sums->out);
	for (ngx_uint_t i = 0; i < ACCEL_COUNTERS; i++) {
		*ngx_snprintf((u_char *)name, sizeof(name) - 1, "%s_total", rows[i].dotted) = '\0';
		for (c = name; *c != '\0'; c++)
			if (*c == '.' || *c == '-')
				*c = '_';
		family(b, name, "counter", rows[i].doc);
		print(b, PREFIX "%s %uL\n", name, sums->counts[i]);
	}
	if (peers_shown(mcf) == 0)
		return;
	family(b, "accelerator_down_workers", "gauge", down_doc);
	for (ngx_uint_t i = 0; i < peers_shown(mcf); i++) {
		print(b, PREFIX "accelerator_down_workers{accelerator=");
		print_quoted(b, peer_name(mcf, i));
		print(b, "} %ui\n", sums->down[i]);
	}
}

#define METRICS_TYPE ngx_string("text/plain; version=0.0.4; charset=utf-8")

static const struct accel_page pages[] = {
	{ ngx_string("text"), ngx_string("text/plain; charset=utf-8"), as_text },
	{ ngx_string("json"), ngx_string("application/json"), as_json },
	{ ngx_string("prometheus"), METRICS_TYPE, as_metrics },
	{ ngx_string("metrics"), METRICS_TYPE, as_metrics },
};

/* ---------------------------------------------------------------- which one */

const struct accel_page *
accel_page_of(const ngx_str_t *word)
{
	for (ngx_uint_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (word->len == pages[i].word.len &&
		    ngx_strncmp(word->data, pages[i].word.data, word->len) == 0)
			return (&pages[i]);
	return (NULL);
}

/* Prometheus adds '=' to a parameter without a value. */
static const struct accel_page *
page_of_query(ngx_str_t query, const struct accel_page *otherwise)
{
	const struct accel_page *page = NULL;
	u_char *p = query.data, *end = p + query.len, *next;
	ngx_str_t word;

	for (; page == NULL && p < end; p = next + 1) {
		next = ngx_strlchr(p, end, '&');
		if (next == NULL)
			next = end;
		word = (ngx_str_t){ (size_t)(next - p), p };
		word.len -= word.len > 0 && word.data[word.len - 1] == '=';
		page = accel_page_of(&word);
	}
	return (page != NULL ? page : otherwise);
}

/* ---------------------------------------------------------------- the answer */

static ngx_buf_t *
page_new(ngx_http_request_t *r, const struct accel_page *page)
{
	const struct accel_main_conf *mcf =
	    ngx_http_get_module_main_conf(r, ngx_http_stat_accel_module);
	size_t size = (ACCEL_COUNTERS + 4) * ROW_MAX;
	struct accel_sums sums;
	ngx_buf_t *b;

	for (ngx_uint_t i = 0; i < peers_shown(mcf); i++)
		size += ROW_MAX + 6 * peer_name(mcf, i)->len; /* \u001f */
	b = ngx_create_temp_buf(r->pool, size);
	if (b == NULL)
		return (NULL);
	accel_counters_sum(mcf, &sums);
	page->write(b, mcf, &sums);
	b->last_buf = r == r->main;
	b->last_in_chain = 1;
	return (b);
}

/* The page changes all the time, so it must not be kept. */
static ngx_int_t
add_no_store(ngx_http_request_t *r)
{
	ngx_table_elt_t *h = ngx_list_push(&r->headers_out.headers);

	if (h == NULL)
		return (NGX_ERROR);
	*h = (ngx_table_elt_t){
		.hash = 1,
		.key = ngx_string("Cache-Control"),
		.value = ngx_string("no-store"),
	};
	return (NGX_OK);
}

ngx_int_t
accel_status_handler(ngx_http_request_t *r)
{
	const struct accel_conf *conf = ngx_http_get_module_loc_conf(r, ngx_http_stat_accel_module);
	const struct accel_page *page = page_of_query(r->args, conf->page);
	ngx_chain_t out = { NULL, NULL };
	ngx_int_t rc;

	if ((r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) == 0)
		return (NGX_HTTP_NOT_ALLOWED);
	rc = ngx_http_discard_request_body(r);
	if (rc != NGX_OK)
		return (rc);
	out.buf = page_new(r, page);
	if (out.buf == NULL || add_no_store(r) != NGX_OK)
		return (NGX_HTTP_INTERNAL_SERVER_ERROR);
	r->headers_out.status = NGX_HTTP_OK;
	r->headers_out.content_type = page->type;
	r->headers_out.content_type_len = page->type.len;
	r->headers_out.content_length_n = out.buf->last - out.buf->pos;
	rc = ngx_http_send_header(r);
	if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
		return (rc);
	return (ngx_http_output_filter(r, &out));
}
