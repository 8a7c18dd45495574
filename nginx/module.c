/* nginx/module.c -- directives, and what nginx knows of the module. */
#include "nginx/stat_accel.h"

static void *
create_main_conf(ngx_conf_t *cf)
{
	struct accel_main_conf *mcf = ngx_pcalloc(cf->pool, sizeof(*mcf));

	if (mcf != NULL)
		mcf->memory_names = NGX_CONF_UNSET_UINT;
	return (mcf);
}

static char *
init_main_conf(ngx_conf_t *cf, void *conf)
{
	struct accel_main_conf *mcf = conf;

	(void)cf;
	ngx_conf_init_uint_value(mcf->memory_names, 65536);
	return (NGX_CONF_OK);
}

static void *
create_loc_conf(ngx_conf_t *cf)
{
	struct accel_conf *conf = ngx_pcalloc(cf->pool, sizeof(*conf));

	if (conf == NULL)
		return (NULL);
	conf->enable = NGX_CONF_UNSET;
	conf->pool = NGX_CONF_UNSET_PTR;
	conf->peer = NGX_CONF_UNSET_PTR;
	conf->remember = NGX_CONF_UNSET_MSEC;
	conf->deadline = NGX_CONF_UNSET_MSEC;
	conf->late = NGX_CONF_UNSET_UINT;
	conf->warm = NGX_CONF_UNSET_SIZE;
	conf->open = NGX_CONF_UNSET_UINT;
	conf->indexes = NGX_CONF_UNSET_PTR;
	for (unsigned i = 0; i < ACCEL_SUFFIXES; i++)
		conf->suffix_use[i] = NGX_CONF_UNSET_UINT;
	conf->listing = NGX_CONF_UNSET;
	conf->dav = NGX_CONF_UNSET;
	return (conf);
}

static char *
merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
	struct accel_conf *prev = parent, *conf = child;

	/* one directive sets the three of them */
	if (conf->enable == NGX_CONF_UNSET) {
		conf->pool = prev->pool;
		conf->peer = prev->peer;
	}
	ngx_conf_merge_value(conf->enable, prev->enable, 0);
	ngx_conf_merge_msec_value(conf->remember, prev->remember, 1000);
	ngx_conf_merge_msec_value(conf->deadline, prev->deadline, 10000);
	ngx_conf_merge_uint_value(conf->late, prev->late, NGX_HTTP_SERVICE_UNAVAILABLE);
	ngx_conf_merge_size_value(conf->warm, prev->warm, 16 * 1024 * 1024);
	ngx_conf_merge_uint_value(conf->open, prev->open, ACCEL_OPEN_AUTO);
	if (conf->page == NULL) /* an "if" keeps the handler of its location */
		conf->page = prev->page;
	accel_stand_in(cf, prev, conf);
	return (accel_heard_merge(cf, prev, conf) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR);
}

/* ---------------------------------------------------------------- directives */

static char *
expected(ngx_conf_t *cf, const char *what, const ngx_str_t *got)
{
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "stat_accel: expected %s, got \"%V\"", what, got);
	return (NGX_CONF_ERROR);
}

static struct accel_peer *
peer_of(ngx_conf_t *cf, const ngx_url_t *url)
{
	struct accel_main_conf *mcf =
	    ngx_http_conf_get_module_main_conf(cf, ngx_http_stat_accel_module);
	struct accel_peer **all, *p;

	if (mcf->peers == NULL)
		mcf->peers = ngx_array_create(cf->pool, 2, sizeof(p));
	if (mcf->peers == NULL)
		return (NULL);
	all = mcf->peers->elts;
	for (ngx_uint_t i = 0; i < mcf->peers->nelts; i++)
		if (all[i]->name.len == url->url.len &&
		    ngx_strncmp(all[i]->name.data, url->url.data, url->url.len) == 0)
			return (all[i]);
	all = ngx_array_push(mcf->peers);
	p = ngx_pcalloc(cf->pool, sizeof(*p));
	if (all == NULL || p == NULL)
		return (NULL);
	p->name = url->url;
	p->sockaddr = url->addrs[0].sockaddr;
	p->socklen = url->addrs[0].socklen;
	p->number = mcf->peers->nelts - 1;
	*all = p;
	return (p);
}

static char *
set_peer(ngx_conf_t *cf, struct accel_conf *conf, const ngx_str_t *address)
{
	ngx_url_t url = { .url = *address };

	if (ngx_parse_url(cf->pool, &url) != NGX_OK || url.naddrs == 0 || url.no_port)
		return (
		    expected(cf, "\"on\", \"off\", \"unix:/PATH\" or \"ADDRESS:PORT\"", address));
	conf->peer = peer_of(cf, &url);
	return (conf->peer != NULL ? NGX_CONF_OK : NGX_CONF_ERROR);
}

/* stat_accel on | off | unix:/PATH | ADDRESS:PORT [threads=NAME]; */
static char *
set_stat_accel(ngx_conf_t *cf, ngx_command_t *cmd, void *data)
{
	const ngx_str_t *words = cf->args->elts;
	struct accel_conf *conf = data;
	ngx_str_t pool = ngx_null_string;

	(void)cmd;
	if (conf->enable != NGX_CONF_UNSET)
		return ("is duplicate");
	conf->peer = NULL;
	conf->enable = ngx_strcmp(words[1].data, "off") != 0;
	if (conf->enable && ngx_strcmp(words[1].data, "on") != 0 &&
	    set_peer(cf, conf, &words[1]) != NGX_CONF_OK)
		return (NGX_CONF_ERROR);
	if (cf->args->nelts == 3) {
		if (words[2].len < 9 || ngx_strncmp(words[2].data, "threads=", 8) != 0)
			return (expected(cf, "\"threads=NAME\"", &words[2]));
		pool = (ngx_str_t){ words[2].len - 8, words[2].data + 8 };
	}
	if (!conf->enable) /* nginx starts the threads of each pool that is named */
		return (NGX_CONF_OK);
	conf->pool = ngx_thread_pool_add(cf, pool.len > 0 ? &pool : NULL);
	return (conf->pool != NULL ? NGX_CONF_OK : NGX_CONF_ERROR);
}

/* stat_accel_late 400..599 | off; */
static char *
set_late(ngx_conf_t *cf, ngx_command_t *cmd, void *data)
{
	const ngx_str_t *words = cf->args->elts;
	struct accel_conf *conf = data;
	ngx_int_t status = ngx_atoi(words[1].data, words[1].len);

	(void)cmd;
	if (conf->late != NGX_CONF_UNSET_UINT)
		return ("is duplicate");
	if (ngx_strcmp(words[1].data, "off") == 0)
		status = 0;
	else if (status < 400 || status > 599) {
		ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
		    "stat_accel_late: expected 400 to 599 or \"off\", got \"%V\"", &words[1]);
		return (NGX_CONF_ERROR);
	}
	conf->late = (ngx_uint_t)status;
	return (NGX_CONF_OK);
}

/* stat_accel_status [text | json | prometheus]; */
static char *
set_status(ngx_conf_t *cf, ngx_command_t *cmd, void *data)
{
	static const ngx_str_t text = ngx_string("text");
	ngx_http_core_loc_conf_t *clcf =
	    ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
	const ngx_str_t *words = cf->args->elts;
	struct accel_conf *conf = data;

	(void)cmd;
	if (conf->page != NULL)
		return ("is duplicate");
	conf->page = accel_page_of(cf->args->nelts > 1 ? &words[1] : &text);
	if (conf->page == NULL) {
		ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
		    "stat_accel_status: expected \"text\", \"json\" or \"prometheus\", got \"%V\"",
		    &words[1]);
		return (NGX_CONF_ERROR);
	}
	clcf->handler = accel_status_handler;
	return (NGX_CONF_OK);
}

#define ANYWHERE (NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_HTTP_LIF_CONF)

static ngx_conf_enum_t open_words[] = {
	{ ngx_string("off"), ACCEL_OPEN_OFF },
	{ ngx_string("on"), ACCEL_OPEN_ON },
	{ ngx_string("auto"), ACCEL_OPEN_AUTO },
	{ ngx_null_string, 0 },
};

/* A name takes 16 bytes of each worker. */
static ngx_conf_num_bounds_t names_bounds = { ngx_conf_check_num_bounds, 0, 1 << 30 };

static ngx_command_t commands[] = {
	{ ngx_string("stat_accel"), ANYWHERE | NGX_CONF_TAKE12, set_stat_accel,
	    NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	{ ngx_string("stat_accel_remember"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_msec_slot,
	    NGX_HTTP_LOC_CONF_OFFSET, offsetof(struct accel_conf, remember), NULL },
	{ ngx_string("stat_accel_names"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1,
	    ngx_conf_set_num_slot, NGX_HTTP_MAIN_CONF_OFFSET,
	    offsetof(struct accel_main_conf, memory_names), &names_bounds },
	{ ngx_string("stat_accel_deadline"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_msec_slot,
	    NGX_HTTP_LOC_CONF_OFFSET, offsetof(struct accel_conf, deadline), NULL },
	{ ngx_string("stat_accel_late"), ANYWHERE | NGX_CONF_TAKE1, set_late,
	    NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	{ ngx_string("stat_accel_open"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot,
	    NGX_HTTP_LOC_CONF_OFFSET, offsetof(struct accel_conf, open), open_words },
	{ ngx_string("stat_accel_warm"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_size_slot,
	    NGX_HTTP_LOC_CONF_OFFSET, offsetof(struct accel_conf, warm), NULL },
	{ ngx_string("stat_accel_status"),
	    NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1, set_status,
	    NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	ngx_null_command,
};

/* ---------------------------------------------------------------- the module */

static ngx_int_t
preconfiguration(ngx_conf_t *cf)
{
	if (accel_vars_add(cf) != NGX_OK || accel_counters_add(cf) != NGX_OK)
		return (NGX_ERROR);
	return (accel_listen(cf));
}

static ngx_int_t
postconfiguration(ngx_conf_t *cf)
{
	accel_listen_end();
	return (accel_phase_init(cf));
}

static void
each_peer(const struct accel_main_conf *mcf, void (*what)(struct accel_peer *))
{
	struct accel_peer **peers = mcf->peers != NULL ? mcf->peers->elts : NULL;

	for (ngx_uint_t i = 0; peers != NULL && i < mcf->peers->nelts; i++)
		what(peers[i]);
}

static ngx_int_t
init_process(ngx_cycle_t *cycle)
{
	const struct accel_main_conf *mcf =
	    ngx_http_cycle_get_module_main_conf(cycle, ngx_http_stat_accel_module);

	if (mcf == NULL || ngx_process == NGX_PROCESS_HELPER) /* of a cache */
		return (NGX_OK);
	accel_counters_init(mcf);
	accel_ask_init();
	accel_mounts_init();
	each_peer(mcf, accel_peer_init);
	return (accel_memory_init(cycle, mcf->memory_names));
}

static void
exit_process(ngx_cycle_t *cycle)
{
	const struct accel_main_conf *mcf =
	    ngx_http_cycle_get_module_main_conf(cycle, ngx_http_stat_accel_module);

	if (mcf == NULL || ngx_process == NGX_PROCESS_HELPER)
		return;
	each_peer(mcf, accel_peer_end);
	accel_counters_end();
}

static ngx_http_module_t context = {
	.preconfiguration = preconfiguration,
	.postconfiguration = postconfiguration,
	.create_main_conf = create_main_conf,
	.init_main_conf = init_main_conf,
	.create_loc_conf = create_loc_conf,
	.merge_loc_conf = merge_loc_conf,
};

ngx_module_t ngx_http_stat_accel_module = {
	NGX_MODULE_V1,
	.ctx = &context,
	.commands = commands,
	.type = NGX_HTTP_MODULE,
	.init_process = init_process,
	.exit_process = exit_process,
	NGX_MODULE_V1_PADDING,
};
