/* server/config/config.h -- a configuration file in lighttpd's language, and what it says for one request.
 *
 *   file -> config_load() -> struct config   (all workers; immutable)
 *                                 |
 *          conf_view_new() -> struct conf_view   (one worker)  -- request --> const struct conf *
 *
 * A condition holds or not; the set of those that hold picks a merged struct conf, built the first time that set is met
 * and kept among the most recent ones.  Without conditions there is one conf and nothing is matched.
 *
 * Errors   config_load() writes "FILE:LINE:COLUMN: what is wrong; what to do" lines to *err and returns NULL;
 *          warnings (settings without effect) go to *warn.
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
	struct text *v; /* NUL behind each */
};

struct conf_pair {
	struct text key, value;
	const struct conf_map *map; /* MAPS only */
};
struct conf_map {
	size_t n;
	struct conf_pair *v; /* in the order of the file */
};

/* One merged set of values. */
struct conf {
#define CONF_FIELD_BOOL(f) bool f;
#define CONF_FIELD_UINT(f) uint64_t f;
#define CONF_FIELD_STR(f) const char *f;
#define CONF_FIELD_LIST(f) struct conf_list f;
#define CONF_FIELD_MAP(f) struct conf_map f;
#define CONF_FIELD_MAPS(f) struct conf_map f;
#define CONF_FIELD_ALIAS(f)
#define CONF_FIELD_NOP(f)
#define CONF_FIELD_OLD(f)
#define D(field, name, type, def, min, max, unit, scope, prose) CONF_FIELD_##type(field)
#include "server/config/directives.def"
#undef D
	/* Number of the block that wrote proxy-core.backends: requests of one block share its pools.  -1: none. */
	int proxy_block;
	int proxy_number; /* the same, counting only blocks that wrote it */
	void *derived; /* what the worker computed from it (root descriptor, mime table ...), by its derive() */
};

/* What conditions look at.  .p NULL: not known yet; then neither == nor != holds, nor an else behind it.  A header the
 * client did not send is known: TEXT(""). */
struct conf_input {
	struct text socket;    /* "127.0.0.1:8080": the listening socket the client came through */
	struct text scheme, host, url, query, referer, useragent, cookie, remoteip, method;
	struct text path;          /* $PHYSICAL["path"] */
	struct text existing_path; /* $PHYSICAL["existing-path"] */
};

struct config;
struct sources;
struct conf_view;

/* Takes the sources (NULL: the system is asked), which answer until config_forget_sources(). */
struct config *config_load(const char *file, struct sources *, struct buf *err, struct buf *warn);
void config_free(struct config *);
struct sources *config_sources(const struct config *);
void config_forget_sources(struct config *); /* gives their memory back once all is read */
size_t config_memory(const struct config *);
const struct conf *config_global(const struct config *); /* values outside of any condition */
/* Addresses to listen on: server.bind/server.port and each $SERVER["socket"] == "...".  i-th or NULL. */
const char *config_listen(const struct config *, size_t i);
bool config_has_conditions(const struct config *); /* without any, all requests share one struct conf */
bool config_uses_physical(const struct config *); /* some condition asks $PHYSICAL: match twice */
/* fn(values, arg) for the file and for each block that sets something, merged with the blocks around it but with none
 * beside it: each value that some request may get stands in one of them.  Until fn says false; then that is returned. */
bool config_each(const struct config *, bool (*fn)(const struct conf *, void *arg), void *arg);
void config_print(const struct config *, struct buf *out); /* -p: what was understood, reloadable text */

/* derive(conf, arg) runs once for each merged conf and sets conf->derived; its result 0 or -errno (logged by the caller,
 * the request gets 500); undo() frees it. */
struct conf_view *conf_view_new(const struct config *, int (*derive)(struct conf *, void *arg), void (*undo)(struct conf *, void *arg), void *arg);
void conf_view_free(struct conf_view *);
/* Valid until the next call, unless it is held.  Of 4096 different sets the one unused for longest makes room.
 * NULL: derive failed, memory is short, or a condition could not be decided. */
const struct conf *conf_view_match(struct conf_view *, const struct conf_input *);
void conf_hold(const struct conf *);
void conf_release(struct conf_view *, const struct conf *); /* before conf_view_free() */
unsigned conf_view_sets(const struct conf_view *);         /* kept, and held */
/* Behind a NULL of conf_view_match(): file and line of the condition whose regular expression reached a limit, so that
 * nobody knows whether it holds.  NULL: another reason. */
const char *conf_view_failed(const struct conf_view *, uint32_t *line);

/* The table of directives, for --manual, man pages and tests. */
struct directive {
	const char *name, *type, *def, *min, *max, *unit, *scope, *prose;
};
extern const struct directive directives[]; /* ends with a NULL name */

/* Settings of lighttpd that are not built here: refused.def. */
struct foreign {
	const char *name; /* or what it begins with */
	enum { FOREIGN_REFUSED, FOREIGN_IGNORED } kind;
	const char *why, *instead;
};
extern const struct foreign foreigns[]; /* ends with a NULL name */

#endif
