#include <string.h>
#include <sysexits.h>

#include "fcgi-stat-accel/dialect.h"
#include "fcgi-stat-accel/options_text.h"
#include "base/quantity.h"
#include "fcgi-stat-accel/warm/words.h"
#include "wire/headers.h"

#define THREADS_DEFAULT	  20
#define THREADS_MAX	  1024
#define QUEUE_DEFAULT	  4096
#define QUEUE_MAX	  (1 << 20)
#define DEADLINE_DEFAULT  10000
#define REMEMBER_DEFAULT  1000
#define MS_MAX		  (24 * 3600 * 1000)
#define BYTES_MAX	  (1ull << 50)
#define EXPIRES_MAX	  (10L * 365 * 24 * 3600)
/* A file that is sent before it is in memory stalls a server whose sendfile() waits; so most files come whole. */
#define WARM_DEFAULT	  (16ull << 20)
#define BEHIND_DEFAULT	  (64ull << 20)

static const struct options_text *opt;

/* What options are made of, for options_choose_free(). */
static struct {
	GArray	  *maps;		/* struct accel_map */
	GPtrArray *ends;		/* the strings of these */
	char	 **path_from, **index, **siblings, **peer_users;
} made;

/* ---------------------------------------------------------------- numbers */

/* Digits only, between min and max. */
static bool
read_number(const char *text, guint64 min, guint64 max, guint64 *n)
{
	return (g_ascii_string_to_unsigned(text, 10, min, max, n, NULL));
}

static bool
number_option(const char *name, const char *text, guint64 min, guint64 max, unsigned *value)
{
	guint64 n;

	if (text == NULL)
		return (true);
	if (!read_number(text, min, max, &n)) {
		complain("--%s: expected %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT ", got \"%s\"", name, min, max, text);
		return (false);
	}
	*value = (unsigned)n;
	return (true);
}

/* A wrong value in the environment may have been meant for something else: say so and go on. */
static bool
threads_from(const char *variable, guint64 *n)
{
	const char *text = g_getenv(variable);

	if (text == NULL)
		return (false);
	if (read_number(text, 1, THREADS_MAX, n))
		return (true);
	complain("%s=\"%s\" is not a number from 1 to %d; ignored", variable, text, THREADS_MAX);
	return (false);
}

static bool
choose_threads(unsigned *threads)
{
	guint64 n = THREADS_DEFAULT;

	if (opt->threads != NULL && !read_number(opt->threads, 1, THREADS_MAX, &n)) {
		complain("--threads: expected 1 to %d, got \"%s\"", THREADS_MAX, opt->threads);
		return (false);
	}
	if (opt->threads == NULL && !threads_from("FCGI_STAT_THREADS", &n))
		threads_from("PHP_FCGI_CHILDREN", &n);
	*threads = (unsigned)n;
	return (true);
}

/* ---------------------------------------------------------------- how to answer */

/* Which of two words it is; NULL is the first. */
static bool
choose_word(const char *name, const char *text, const char *first, const char *second, bool *is_second)
{
	*is_second = text != NULL && strcmp(text, second) == 0;
	if (text == NULL || *is_second || strcmp(text, first) == 0)
		return (true);
	complain("--%s: expected %s or %s, got \"%s\"", name, first, second, text);
	return (false);
}

static bool
choose_header(struct accel_conf *conf)
{
	const struct dialect *d = dialect_of(opt->dialect != NULL ? opt->dialect : "lighttpd");

	if (d == NULL) {
		complain("--for %s: no such server (--manual lists them)", opt->dialect);
		return (false);
	}
	conf->header = opt->header != NULL ? opt->header : d->header;
	if (!header_is_token(text_of(conf->header))) {
		complain("--header \"%s\": not the name of a header", conf->header);
		return (false);
	}
	conf->utf8 = d->utf8;
	conf->status_307 = d->status_307;
	conf->raw = d->raw;
	return (opt->encode == NULL || choose_word("encode", opt->encode, "percent", "raw", &conf->raw));
}

/* A line end in what becomes a part of the header would begin another one. */
static bool
has_control(const char *text)
{
	while (*text != '\0' && !g_ascii_iscntrl(*text))
		text++;
	return (*text != '\0');
}

/* Whole segments are replaced, and the URI is sent as it is. */
static bool
map_is_good(const char *from, const char *to)
{
	return (from[0] == '/' && g_str_has_suffix(from, "/") == g_str_has_suffix(to, "/") && !has_control(to) &&
	    strchr(to, ' ') == NULL);
}

static bool
add_map(const char *text)
{
	char **ends = g_strsplit(text, "=", 2);
	struct accel_map m = { ends[0], ends[1] };

	g_ptr_array_add(made.ends, ends);
	if (m.to == NULL || !map_is_good(m.from, m.to)) {
		complain("--map: expected /PATH=/URI, both with a slash at the end or both without, got \"%s\"", text);
		return (false);
	}
	g_array_append_val(made.maps, m);
	return (true);
}

static bool
choose_maps(struct accel_conf *conf)
{
	if (opt->maps == NULL)
		return (true);
	made.maps = g_array_new(TRUE, TRUE, sizeof(struct accel_map));
	made.ends = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
	for (char **m = opt->maps; *m != NULL; m++)
		if (!add_map(*m))
			return (false);
	conf->maps = (const struct accel_map *)made.maps->data;
	return (true);
}

/* "a,b" without blanks around; NULL when there is none. */
static const char *const *
split(const char *text, char ***list)
{
	if (text == NULL || *text == '\0')
		return (NULL);
	*list = g_strsplit(text, ",", -1);
	for (char **p = *list; *p != NULL; p++)
		g_strstrip(*p);
	return ((const char *const *)*list);
}

static bool
choose_expires(long *expires)
{
	guint64 n;

	*expires = -1;
	if (opt->expires == NULL)
		return (true);
	if (!read_number(opt->expires, 0, EXPIRES_MAX, &n)) {
		complain("--expires: expected 0 to %ld seconds, got \"%s\"", EXPIRES_MAX, opt->expires);
		return (false);
	}
	*expires = (long)n;
	return (true);
}

static bool
is_url_path(const char *name, const char *text)
{
	if (text == NULL || text[0] == '/')
		return (true);
	complain("--%s: expected a path that begins with /, got \"%s\"", name, text);
	return (false);
}

static bool
choose_answer(struct accel_conf *conf)
{
	bool is_auth;

	if (!choose_word("mode", opt->mode, "sendfile", "auth", &is_auth) ||
	    !choose_word("late", opt->late, "go-on", "503", &conf->late_503) ||
	    !choose_header(conf) || !choose_maps(conf) || !choose_expires(&conf->expires))
		return (false);
	conf->mode = is_auth ? MODE_AUTH : MODE_SENDFILE;
	conf->path_from = split(opt->path_from, &made.path_from);
	conf->etag = opt->etag;
	conf->last_modified = opt->last_modified;
	return (true);
}

/* ---------------------------------------------------------------- what to warm */

static bool
choose_before(struct warm_conf *conf)
{
	conf->how = WARM_READ;
	conf->before = WARM_DEFAULT;
	if (opt->warm == NULL || warm_words_read(opt->warm, &conf->how, &conf->before))
		return (true);
	complain("--warm: expected " WARM_WORDS ", got \"%s\"", opt->warm);
	return (false);
}

/* Who asks for no bytes before the answer gets none behind it, unless --behind is given. */
static bool
choose_behind(struct warm_conf *conf)
{
	const char *text = opt->behind;

	conf->behind = conf->how == WARM_READ ? BEHIND_DEFAULT : 0;
	if (text == NULL)
		return (true);
	if (strcmp(text, "all") == 0)
		conf->behind = WARM_ALL;
	else if (strcmp(text, "none") == 0)
		conf->behind = 0;
	else if (!quantity_read(text, 0, BYTES_MAX, &conf->behind)) {
		complain("--behind: expected BYTES (64m), all or none, got \"%s\"", text);
		return (false);
	}
	if (conf->behind != 0 && conf->how == WARM_STAT) {
		complain("--behind %s: with --warm=stat no file is opened to be read", text);
		return (false);
	}
	return (true);
}

static bool
choose_roots(struct warm_conf *conf)
{
	for (char **dir = opt->roots; dir != NULL && *dir != NULL; dir++)
		if ((*dir)[0] != '/') {
			complain("--root: expected an absolute path, got \"%s\"", *dir);
			return (false);
		}
	conf->roots = (const char *const *)opt->roots;
	return (true);
}

static bool
choose_index(const char *const **names)
{
	*names = split(opt->index, &made.index);
	if (opt->index == NULL || !has_control(opt->index))
		return (true);
	complain("--index: expected names of files without control characters, as \"index.html,index.htm\"");
	return (false);
}

static bool
choose_warm(struct warm_conf *conf)
{
	conf->deadline_ms = DEADLINE_DEFAULT;
	conf->remember_ms = REMEMBER_DEFAULT;
	conf->siblings = split(opt->siblings, &made.siblings);
	return (choose_index(&conf->index) && choose_before(conf) && choose_behind(conf) && choose_roots(conf) &&
	    number_option("deadline", opt->deadline, 0, MS_MAX, &conf->deadline_ms) &&
	    number_option("remember", opt->remember, 0, MS_MAX, &conf->remember_ms) &&
	    number_option("slow-ms", opt->slow, 0, MS_MAX, &conf->slow_ms));
}

static bool
choose_timing(enum timing_format *timing)
{
	bool json;

	*timing = TIMING_OFF;
	if (opt->timing == NULL)
		return (true);
	if (!choose_word("timing", opt->timing, "line", "json", &json))
		return (false);
	*timing = json ? TIMING_JSON : TIMING_LINE;
	return (true);
}

/* A variable of some script that was empty must not mean everybody. */
static bool
choose_peer_users(const char *const **users)
{
	*users = split(opt->peer_users, &made.peer_users);
	if (opt->peer_users == NULL || *users != NULL)
		return (true);
	complain("--peer-user: expected names or numbers of users, got \"\"");
	return (false);
}

static int
choose_user(struct user *u)
{
	if (opt->user == NULL || user_read(opt->user, u) == 0)
		return (OPTIONS_RUN);
	complain("--user %s: there is no such user or group", opt->user);
	return (EX_NOUSER);
}

int
options_choose(const struct options_text *text, struct options *o)
{
	opt = text;
	o->queue = QUEUE_DEFAULT;
	o->listen = opt->address;
	o->allow_any = opt->allow_any;
	o->sandbox = !opt->no_sandbox;
	o->status_path = opt->status_path;
	o->ping_path = opt->ping_path;
	o->log = opt->log;
	if (!(choose_threads(&o->threads) && choose_peer_users(&o->peer_users) &&
	    number_option("per-device", opt->per_device, 0, THREADS_MAX, &o->per_device) &&
	    number_option("queue", opt->queue, 1, QUEUE_MAX, &o->queue) && choose_answer(&o->accel) && choose_warm(&o->warm) &&
	    choose_timing(&o->timing) && is_url_path("status-path", o->status_path) && is_url_path("ping-path", o->ping_path)))
		return (EX_USAGE);
	return (choose_user(&o->user));
}

void
options_choose_free(void)
{
	g_clear_pointer(&made.path_from, g_strfreev);
	g_clear_pointer(&made.index, g_strfreev);
	g_clear_pointer(&made.siblings, g_strfreev);
	g_clear_pointer(&made.peer_users, g_strfreev);
	g_clear_pointer(&made.ends, g_ptr_array_unref);
	if (made.maps != NULL)
		g_array_free(made.maps, TRUE);
	made.maps = NULL;
}
