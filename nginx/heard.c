/* nginx/heard.c -- what the directives of other modules say of the names that nginx will look up.
 *
 * Their configurations are private.  So while http { } is read, a few of their directives are read
 * by heard() as well: it lets the module read its directive, then notes the words for the same
 * block. After http { } the directives are their modules' own again. */
#include "nginx/stat_accel.h"

typedef ngx_int_t (*hear_pt)(ngx_conf_t *cf, struct accel_conf *conf, ngx_uint_t n);

struct listener {
	const char *module_directive; /* name of the directive; its module is found by it */
	hear_pt hear;
	ngx_uint_t n;
	/* while http { } is read */
	ngx_command_t *command;
	char *(*set)(ngx_conf_t *, ngx_command_t *, void *);
};

/* ---------------------------------------------------------------- each directive */

static ngx_int_t
compile(ngx_conf_t *cf, ngx_str_t *text, ngx_http_complex_value_t *to)
{
	ngx_http_compile_complex_value_t ccv = { .cf = cf, .value = text, .complex_value = to };

	return (ngx_http_compile_complex_value(&ccv));
}

/* try_files NAME... OTHERWISE; the last is not looked for.  Its module has put a NUL in place of
 * the slash after a directory. */
static ngx_int_t
hear_try_files(ngx_conf_t *cf, struct accel_conf *conf, ngx_uint_t n)
{
	ngx_str_t *words = cf->args->elts, word;
	struct accel_try *t;

	(void)n;
	conf->tries = ngx_array_create(cf->pool, cf->args->nelts, sizeof(*t));
	if (conf->tries == NULL)
		return (NGX_ERROR);
	for (ngx_uint_t i = 1; i + 1 < cf->args->nelts; i++) {
		t = ngx_array_push(conf->tries);
		word = words[i];
		t->dir = word.len > 0 && word.data[word.len - 1] == '\0';
		word.len -= t->dir;
		if (compile(cf, &word, &t->value) != NGX_OK)
			return (NGX_ERROR);
	}
	return (NGX_OK);
}

static ngx_int_t
hear_index(ngx_conf_t *cf, struct accel_conf *conf, ngx_uint_t n)
{
	ngx_str_t *words = cf->args->elts;
	ngx_http_complex_value_t *value;

	(void)n;
	if (conf->indexes == NGX_CONF_UNSET_PTR)
		conf->indexes = ngx_array_create(cf->pool, 2, sizeof(*value));
	if (conf->indexes == NULL)
		return (NGX_ERROR);
	for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
		value = ngx_array_push(conf->indexes);
		if (value == NULL || compile(cf, &words[i], value) != NGX_OK)
			return (NGX_ERROR);
	}
	return (NGX_OK);
}

static ngx_str_t
first_word(const ngx_conf_t *cf)
{
	return (((ngx_str_t *)cf->args->elts)[1]);
}

static bool
is(ngx_str_t word, const char *what)
{
	return (word.len == ngx_strlen(what) &&
		ngx_strncasecmp(word.data, (u_char *)what, word.len) == 0);
}

/* gzip_static and those of other modules: on, off, always. */
static ngx_int_t
hear_static(ngx_conf_t *cf, struct accel_conf *conf, ngx_uint_t n)
{
	conf->suffix_use[n] = is(first_word(cf), "always") ? ACCEL_SUFFIX_ALWAYS
			      : is(first_word(cf), "off")  ? ACCEL_SUFFIX_OFF
							   : ACCEL_SUFFIX_ON;
	return (NGX_OK);
}

static ngx_int_t
hear_listing(ngx_conf_t *cf, struct accel_conf *conf, ngx_uint_t n)
{
	(void)n;
	if (conf->listing != 1) /* autoindex and random_index */
		conf->listing = is(first_word(cf), "on");
	return (NGX_OK);
}

static ngx_int_t
hear_dav(ngx_conf_t *cf, struct accel_conf *conf, ngx_uint_t n)
{
	(void)n;
	conf->dav = !is(first_word(cf), "off");
	return (NGX_OK);
}

/* The module has set the handler of this location. */
static ngx_int_t
hear_handler(ngx_conf_t *cf, struct accel_conf *conf, ngx_uint_t kind)
{
	struct accel_main_conf *mcf =
	    ngx_http_conf_get_module_main_conf(cf, ngx_http_stat_accel_module);
	ngx_http_core_loc_conf_t *clcf =
	    ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

	(void)conf;
	for (ngx_uint_t i = 0; i < mcf->handlers_n; i++)
		if (mcf->handlers[i].handler == clcf->handler)
			return (NGX_OK);
	if (mcf->handlers_n < ACCEL_HANDLERS)
		mcf->handlers[mcf->handlers_n++] =
		    (struct accel_known_handler){ clcf->handler, (enum accel_handler)kind };
	return (NGX_OK);
}

static struct listener listeners[] = {
	{ .module_directive = "try_files", .hear = hear_try_files },
	{ .module_directive = "index", .hear = hear_index },
	{ .module_directive = "zstd_static", .hear = hear_static, .n = 0 },
	{ .module_directive = "brotli_static", .hear = hear_static, .n = 1 },
	{ .module_directive = "gzip_static", .hear = hear_static, .n = 2 },
	{ .module_directive = "autoindex", .hear = hear_listing },
	{ .module_directive = "random_index", .hear = hear_listing },
	{ .module_directive = "dav_methods", .hear = hear_dav },
	{ .module_directive = "mp4", .hear = hear_handler, .n = ACCEL_HANDLER_FILE },
	{ .module_directive = "flv", .hear = hear_handler, .n = ACCEL_HANDLER_FILE },
	{ .module_directive = "proxy_pass", .hear = hear_handler, .n = ACCEL_HANDLER_UPSTREAM },
	{ .module_directive = "fastcgi_pass", .hear = hear_handler, .n = ACCEL_HANDLER_UPSTREAM },
	{ .module_directive = "uwsgi_pass", .hear = hear_handler, .n = ACCEL_HANDLER_UPSTREAM },
	{ .module_directive = "scgi_pass", .hear = hear_handler, .n = ACCEL_HANDLER_UPSTREAM },
};
#define LISTENERS (sizeof(listeners) / sizeof(listeners[0]))

/* ---------------------------------------------------------------- listening */

static char *
heard(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
	struct accel_conf *mine = ngx_http_conf_get_module_loc_conf(cf, ngx_http_stat_accel_module);
	struct listener *l = listeners;
	char *said;

	while (l->command != command)
		l++;
	said = l->set(cf, command, conf);
	if (said != NGX_CONF_OK)
		return (said);
	return (l->hear(cf, mine, l->n) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR);
}

static void
listen_to(ngx_command_t *command)
{
	for (struct listener *l = listeners; l < listeners + LISTENERS; l++) {
		if (l->command != NULL || !is(command->name, l->module_directive))
			continue;
		l->command = command;
		l->set = command->set;
		command->set = heard;
	}
}

void
accel_listen_end(void)
{
	for (struct listener *l = listeners; l < listeners + LISTENERS; l++) {
		if (l->command == NULL)
			continue;
		l->command->set = l->set;
		l->command = NULL;
	}
}

static void
listen_end(void *data)
{
	(void)data;
	accel_listen_end();
}

/* Reading may stop at an error: the directives are given back then, too. */
ngx_int_t
accel_listen(ngx_conf_t *cf)
{
	ngx_pool_cleanup_t *c = ngx_pool_cleanup_add(cf->temp_pool, 0);

	if (c == NULL)
		return (NGX_ERROR);
	c->handler = listen_end;
	for (ngx_uint_t i = 0; cf->cycle->modules[i] != NULL; i++) {
		ngx_module_t *m = cf->cycle->modules[i];

		if (m->type != NGX_HTTP_MODULE || m->commands == NULL)
			continue;
		for (ngx_command_t *command = m->commands; command->name.len != 0; command++)
			if ((command->type & NGX_HTTP_LOC_CONF) != 0)
				listen_to(command);
	}
	return (NGX_OK);
}

/* ---------------------------------------------------------------- inner blocks */

ngx_int_t
accel_heard_merge(ngx_conf_t *cf, struct accel_conf *prev, struct accel_conf *conf)
{
	static ngx_str_t index = ngx_string("index.html");
	ngx_http_complex_value_t *value;

	ngx_conf_merge_ptr_value(conf->indexes, prev->indexes, NULL);
	if (conf->indexes == NULL) {
		conf->indexes = ngx_array_create(cf->pool, 1, sizeof(*value));
		value = conf->indexes != NULL ? ngx_array_push(conf->indexes) : NULL;
		if (value == NULL || compile(cf, &index, value) != NGX_OK)
			return (NGX_ERROR);
	}
	for (unsigned i = 0; i < ACCEL_SUFFIXES; i++)
		ngx_conf_merge_uint_value(conf->suffix_use[i], prev->suffix_use[i],
		    ACCEL_SUFFIX_OFF);
	ngx_conf_merge_value(conf->listing, prev->listing, 0);
	ngx_conf_merge_value(conf->dav, prev->dav, 0);
	return (NGX_OK);
}
