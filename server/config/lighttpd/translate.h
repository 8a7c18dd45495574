/* server/config/lighttpd/translate.h -- shared by the translate*.c files: fastcgi.server,
 * scgi.server, proxy.server and ajp13.server of lighttpd 1.4 become blocks of proxy-core.
 *
 *   fastcgi.server = ( ".php" => (( HOST )), "/app" => (( HOST ), ( HOST )) )
 *        |               `--- key: an ending or a prefix        `--- hosts: backends of one pool
 *        `-> $PHYSICAL["existing-path"] =~ "\.php\z" { proxy-core.backends = ( ... ) ... }
 *            else $HTTP["url"] =~ "^/app" { ... }
 *
 * It works on the parsed entries, before the table of directives checks them.  The translated
 * entries are removed, so that all checks see what a person could have written.
 *
 *   translate.c        which blocks, in which order
 *   translate_hosts.c  reads the lists of hosts
 *   translate_pool.c   the settings of a block
 *   translate_proxy.c  proxy.header, proxy.forwarded, proxy.replace-http-host
 */
#ifndef SERVER_CONFIG_TRANSLATE_H
#define SERVER_CONFIG_TRANSLATE_H

#include "server/config/impl.h"

struct gateway_kind {
	const char *name;     /* the part before the dot */
	const char *module;   /* its name in server.modules */
	const char *protocol; /* of proxy-core.protocol */
	uint16_t port;        /* 0: must be written */
	bool only_urls;       /* files do not matter: check-local is disabled */
};

/* The keys of a host. */
enum gateway_option {
#define O(id, name, type, of) GATEWAY_##id,
#include "server/config/lighttpd/translate.def"
#undef O
	GATEWAY_OPTIONS
};

struct gateway_host {
	struct text label;                               /* .p NULL: none */
	const struct cfg_value *option[GATEWAY_OPTIONS]; /* NULL: not set */
};

struct gateway_key { /* an ending or a prefix, with its hosts of one role */
	struct text key;
	bool authorizer;
	bool local; /* check-local: only for files that exist */
	struct gateway_host *host;
	size_t nhosts;
};

struct gateway { /* one KIND.server of one block */
	const struct gateway_kind *kind;
	struct cfg_block *block;
	struct cfg_entry e;
	struct gateway_key *key;
	size_t nkeys;
};

/* Fills g->key from g->e.  False: errors are reported. */
bool gateway_read(struct config *, struct gateway *);
/* Of the first host; they are equal in all hosts of a key. */
const struct cfg_value *gateway_option(const struct gateway_key *, enum gateway_option);
bool gateway_is_on(const struct cfg_value *);      /* NULL: false */
uint64_t gateway_number(const struct cfg_value *); /* NULL: 0 */

/* "unix:/path" or "host:port" of the n-th process; .p NULL: reported. */
struct text gateway_address(struct config *, const struct gateway *, const struct gateway_host *,
    unsigned n);
unsigned gateway_processes(const struct gateway_host *); /* sockets of a host, at least 1 */

/* Writes the settings of the pool into the block. */
void gateway_fill(struct config *, const struct gateway *, const struct gateway_key *,
    struct cfg_block *);
/* KIND.SETTING of the block of g, or around it; NULL: not set. */
const struct cfg_value *gateway_setting(struct config *, const struct gateway *,
    const char *setting);

/* proxy.header, proxy.forwarded ...; NULL at the end */
extern const char *const gateway_proxy_settings[];
#define GATEWAY_RULES_MAX 4u
/* Writes what these ask for.  rules: those of proxy-core.rewrite-request so far, with room for
 * GATEWAY_RULES_MAX; the function adds its own and writes all. */
void gateway_proxy(struct config *, const struct gateway *, const struct gateway_key *,
    struct cfg_block *, struct cfg_item *rules, size_t n);

/* ---- making entries */

void translate_set(struct config *, struct cfg_block *, struct cfg_pos, const char *key,
    const struct cfg_value *);
/* ( NAME => ( REGEX => REPLACEMENT ) ) as an item of proxy-core.rewrite-request */
struct cfg_item translate_rule(struct config *, struct cfg_pos, const char *name, struct text regex,
    struct text replacement);
void translate_rules(struct config *, struct cfg_block *, struct cfg_pos, const char *key,
    const struct cfg_item *, size_t n);                    /* n 0: nothing */
struct text translate_text(struct config *, struct buf *); /* a copy; frees the buf */
/* Writes t so that a replacement takes it literally. */
struct text translate_literal(struct config *, struct text t);
/* Writes t so that a regular expression takes it literally. */
void translate_quote(struct buf *, struct text t);

#endif
