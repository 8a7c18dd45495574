/* nginx/vars.c -- $stat_accel_status and $stat_accel_time, for log formats. */
#include "nginx/stat_accel.h"

static ngx_int_t
status(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	static const char *const words[] = { "none", "off", "remembered", "hot", "warmed", "late" };
	const struct accel_conf *conf = ngx_http_get_module_loc_conf(r, ngx_http_stat_accel_module);
	const struct accel_ctx *ctx = accel_ctx_find(r);
	const char *word = words[ctx != NULL ? ctx->status : conf->enable ? ACCEL_NONE : ACCEL_OFF];

	(void)data;
	v->data = (u_char *)word;
	v->len = (unsigned)ngx_strlen(word) & 0xfffffff;
	v->valid = 1;
	v->not_found = 0;
	v->no_cacheable = 1;
	return (NGX_OK);
}

/* Seconds, with three digits. */
static ngx_int_t
waited(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	const struct accel_ctx *ctx = accel_ctx_find(r);
	ngx_msec_t ms = ctx != NULL ? ctx->waited : 0;

	(void)data;
	v->data = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 4);
	if (v->data == NULL)
		return (NGX_ERROR);
	v->len =
	    (unsigned)(ngx_sprintf(v->data, "%T.%03M", (time_t)ms / 1000, ms % 1000) - v->data) &
	    0xfffffff;
	v->valid = 1;
	v->not_found = 0;
	v->no_cacheable = 1;
	return (NGX_OK);
}

ngx_int_t
accel_vars_add(ngx_conf_t *cf)
{
	static ngx_str_t names[] = { ngx_string("stat_accel_status"),
		ngx_string("stat_accel_time") };
	static const ngx_http_get_variable_pt gets[] = { status, waited };
	ngx_http_variable_t *v;

	for (ngx_uint_t i = 0; i < 2; i++) {
		v = ngx_http_add_variable(cf, &names[i], NGX_HTTP_VAR_NOCACHEABLE);
		if (v == NULL)
			return (NGX_ERROR);
		v->get_handler = gets[i];
	}
	return (NGX_OK);
}
