/* server/config/config.h -- a configuration file in lighttpd's language, and its values for one
 * request.
 *
 *   file -> config_load() -> struct config   (all workers; immutable)
 *                                 |
 *          conf_view_new() -> struct conf_view   (one worker)  -- request --> const struct conf *
 *
 * The set of conditions that are true picks a merged struct conf.  It is built when the set first
 * occurs, and the most recent ones are kept.  Without conditions there is one struct conf, and
 * nothing is matched.
 *
 * Errors   config_load() writes "FILE:LINE:COLUMN: what is wrong; what to do" lines to *err and
 *          returns NULL; warnings (settings without effect) go to *warn.
 * Thread   config_load() at start-up and reload, may block; a view belongs to one thread.
 */
#ifndef SERVER_CONFIG_CONFIG_H
#define SERVER_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/text.h"

struct conf_list {
	size_t n;
	struct text *v; /* each with a NUL after it */
};

/* t ends with one of the list, in either case: some file systems know "a.PHP" as "a.php". */
static inline bool
conf_list_ends(const struct conf_list *list, struct text t)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		if (text_iends(t, list->v[i]))
			return (true);
	return (false);
}

struct conf_pair {
	struct text key, value;
	const struct conf_map *map; /* MAPS only */
};
struct conf_map {
	size_t n;
	struct conf_pair *v; /* in the order of the file */
	unsigned block;      /* number of the block that sets it, for what its condition captured */
};

/* One merged set of values. */
struct conf {
#define CONF_FIELD_BOOL(f) bool f;
#define CONF_FIELD_UINT(f) uint64_t f;
#define CONF_FIELD_STR(f)  const char *f;
#define CONF_FIELD_LIST(f) struct conf_list f;
#define CONF_FIELD_MAP(f)  struct conf_map f;
#define CONF_FIELD_MAPS(f) struct conf_map f;
#define CONF_FIELD_ALIAS(f)
#define CONF_FIELD_NOP(f)
#define CONF_FIELD_BLOCK(f)
#define CONF_FIELD_OLD(f)
#define D(field, name, type, def, min, max, unit, scope, prose) CONF_FIELD_##type(field)
#include "server/config/directives.def"
#undef D
	/* From config_each() and config_block(): number of the block whose values these are, for
	 * config_where(). */
	unsigned values_of;
	/* Number of the block that set proxy-core.backends; its requests share its pools.  -1:
	 * none. */
	int proxy_block;
	int proxy_number; /* its number among the lists of backends */
	/* Block and number of the list of proxy-core.authorizer. */
	int authorizer_block, authorizer_number;
	/* The value of server.kbytes-per-second in the block that set it, which all requests of the
	 * block share; NULL: not set. */
	const uint64_t *server_rate_at;
	/* Endings of scripts, as conditions around proxy-core.backends have them: a link to such a
	 * file is not sent. */
	const struct conf_list *condition_endings;
	/* server.feature-flags: longest drain in seconds; 0: no limit.  Without the setting a drain
	 * after a reload or an upgrade has none. */
	uint64_t graceful_s;
	bool graceful_set;
	/* server.http-parseopts: URLPATH_SLASHES ... of wire/urlpath.h */
	unsigned url_checks;
	/* made by the worker's derive(): root descriptor, mime table ... */
	void *derived;
};

/* The fields that conditions compare.  .p NULL: not known yet; then == and != are both false, and
 * so is an else after them.  A header that the client did not send is known: TEXT(""). */
struct conf_input {
	struct text socket; /* "127.0.0.1:8080": the listening socket of the connection */
	struct text scheme, host, url, query, referer, useragent, cookie, remoteip, method;
	struct text path;           /* $PHYSICAL["path"] */
	struct text existing_path;  /* $PHYSICAL["existing-path"] */
	const struct text *headers; /* those of config_header(), in its order; NULL: not known */
};

struct config;
struct sources;
struct conf_view;

static inline bool
conf_is_set(const char *value)
{
	return (value != NULL && value[0] != '\0');
}

/* Takes the sources, which answer until config_forget_sources().  NULL: asks the system. */
struct config *config_load(const char *file, struct sources *, struct buf *err, struct buf *warn);
void config_free(struct config *);
struct sources *config_sources(const struct config *);
void config_forget_sources(struct config *); /* frees the sources when everything is read */
size_t config_memory(const struct config *);
const struct conf *config_global(const struct config *); /* values outside of all conditions */
/* The i-th address to listen on, or NULL: server.bind/server.port and each $SERVER["socket"] ==
 * "...". */
const char *config_listen(const struct config *, size_t i);
/* false: all requests share one struct conf */
bool config_has_conditions(const struct config *);
/* The i-th header that a condition compares, in lower case; .p NULL: no more. */
struct text config_header(const struct config *, size_t i);
/* The hosts that $HTTP["host"] == "..." names, in the order of the file; some twice. */
void config_hosts(const struct config *, void (*each)(void *arg, struct text host), void *arg);
/* The host that $HTTP["host"] == "..." names, of the block that sets this directive of these values
 * or around it.  TEXT_NONE: none.  store: HTTP_HOST_MAX bytes. */
struct text config_host_of(const struct config *, const struct conf *, const char *name,
    char *store);
bool config_uses_physical(const struct config *); /* a condition uses $PHYSICAL: match twice */
/* Calls fn(values, arg) for the file and for each block with settings, merged with its outer
 * blocks but not with its neighbours.  Every value that a request may get is in one of these
 * calls. Stops when fn returns false, and returns that. */
bool config_each(const struct config *, bool (*fn)(const struct conf *, void *arg), void *arg);
/* The same for the connections of one socket, before there is a request: the file and the blocks
 * whose conditions this socket can fulfil, merged with the blocks of the socket, too.  NULL: any
 * socket, as config_each(). */
bool config_each_at(const struct config *, const char *socket,
    bool (*fn)(const struct conf *, void *arg), void *arg);
/* Begins a message about one of these values: "FILE:LINE:COLUMN: NAME: ".  names: directives,
 * separated by spaces; the message is about the first that the innermost block sets.  A default has
 * no place: "NAME: ". */
void config_where(const struct config *, const struct conf *, const char *names, struct buf *out);
struct conf_refusal {
	const struct config *config;
	const struct conf *c; /* the values that are looked at now */
	char *err;            /* errsize bytes: the message */
	size_t errsize;
};
/* Writes such a message; the second one quotes a value.  Both always return false, so that a
 * function can end with them. */
bool config_refuse(const struct conf_refusal *, const char *names, const char *why);
bool config_refuse_value(const struct conf_refusal *, const char *names, const char *value,
    const char *why);
/* Values of a listening socket: of the file and of $SERVER["socket"] blocks, but of no other
 * condition. */
void config_socket(const struct config *, const char *socket, struct conf *);
/* Calls fn for each socket with ssl.engine, with such values; and with NULL and those of the file,
 * if one that the service manager passes and no block names has it.  Stops when fn returns false,
 * and returns that. */
bool config_each_secure(const struct config *,
    bool (*fn)(const char *socket, const struct conf *, void *arg), void *arg);
/* Values of one block (proxy_block), merged with its outer blocks: those of a pool. */
void config_block(const struct config *, int block, struct conf *);
/* -p: the configuration as text that can be loaded again */
void config_print(const struct config *, struct buf *out);
/* --translate: the same with secrets and without comments on sockets; it can replace the file */
void config_print_whole(const struct config *, struct buf *out);

/* derive(conf, arg) runs once for each merged conf and sets conf->derived.  It returns 0 or
 * -errno (logged by the caller; the request gets 500).  undo() frees conf->derived. */
struct conf_view *conf_view_new(const struct config *, int (*derive)(struct conf *, void *arg),
    void (*undo)(struct conf *, void *arg), void *arg);
void conf_view_free(struct conf_view *);
/* Valid until the next call, unless it is held.  Of 4096 sets the least recently used one is
 * dropped.  NULL: derive failed, memory is short, or a condition could not be decided. */
const struct conf *conf_view_match(struct conf_view *, const struct conf_input *);
void conf_hold(const struct conf *);
void conf_release(struct conf_view *, const struct conf *); /* call it before conf_view_free() */
unsigned conf_view_sets(const struct conf_view *);          /* sets that are kept or held */
/* cap: MATCH_CAPTURES slices of the input, which the condition of a block captures.  False:
 * nothing.  *decoded: they are slices of a path without escapes. */
bool conf_view_capture(const struct conf_view *, unsigned block, const struct conf_input *,
    struct text *cap, bool *decoded);
/* Calls fn for each condition of the last request. */
void conf_view_tell(const struct conf_view *,
    void (*fn)(void *arg, const char *file, uint32_t line, struct text cond, const char *state),
    void *arg);
/* After conf_view_match() returned NULL: file and line of the condition whose regular expression
 * reached a limit, so that its result is unknown.  NULL: another reason. */
const char *conf_view_failed(const struct conf_view *, uint32_t *line);

/* The table of directives, for --manual, manual pages and tests. */
struct directive {
	const char *name, *type, *def, *min, *max, *unit, *scope, *prose;
};
extern const struct directive directives[]; /* ends with name NULL */

/* Settings of lighttpd that accel-server does not have: refused.def. */
struct refused {
	const char *name; /* or a prefix */
	enum { SETTING_REFUSED, SETTING_IGNORED } kind;
	const char *why, *instead;
};
extern const struct refused refused_settings[]; /* ends with name NULL */

/* Settings of lighttpd by module: lighttpd.def. */
struct known_module {
	const char *name, *since;
	const char *names; /* separated by spaces */
};
extern const struct known_module known_modules[]; /* ends with name NULL */

/* A module has the first of these kinds that one of its settings has. */
enum setting_kind { KIND_HONOURED, KIND_REFUSED, KIND_HARMLESS, KIND_UNKNOWN };
struct known {
	enum setting_kind kind;
	const struct directive *directive; /* the row that gives the kind, or NULL */
	const struct refused *refused;
};
struct known known_setting(struct text name);
struct known known_module_kind(struct text name);
bool known_module_reads(struct text module, struct text setting);
/* A setting that begins like this one, up to the first dot, is honoured or refused. */
bool known_family_matters(struct text name);
const char *const *known_names(void); /* all settings, NULL at the end */

#endif
