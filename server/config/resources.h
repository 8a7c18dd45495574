/* server/config/resources.h -- the things outside of a configuration that it names: directories,
 * logs, error pages, MIME types, hosts.
 *
 * The values of a request depend on the conditions that are true, but each value is in the file or
 * in one of its blocks.  So the things of all blocks are opened before the first request, and a
 * worker only looks them up.
 *
 * Owner    the generation; outlives its workers, which share the descriptors, and ends before its
 *          config.
 * Errors   resources_new() returns NULL and writes one line to *err (errsize bytes), as the parser
 *          does: "FILE:LINE:COLUMN: directive: mistake".
 * Thread   resources_new() at start and at reload, may block; read-only afterwards.
 */
#ifndef SERVER_CONFIG_RESOURCES_H
#define SERVER_CONFIG_RESOURCES_H

#include "base/text.h"

struct backends;
struct buf;
struct certificates;
struct conf;
struct conf_map;
struct config;
struct io_secure; /* io/tls/tls.h */
struct logfile;
struct mime;
struct page;
struct rewrite;
struct rules_kind;
struct root;
struct targets;
struct tls_verifier; /* io/tls/verifier.h */
struct verifiers;
struct resources;

/* -errno: the log is unusable */
typedef int resources_log_fn(void *arg, const char *path, struct logfile **);

/* kinds: RULES of them, rules_kinds[] of server/module/rules.h.  open_log NULL: opens no access
 * logs.  A check passes a function that makes no file. */
struct resources *resources_new(const struct config *, const struct rules_kind *const *kinds,
    resources_log_fn *open_log, void *arg, char *err, size_t errsize);
/* Writes "FILE:LINE:COLUMN: directive: what a client will refuse" lines. */
void resources_warn(const struct resources *, const struct config *, struct buf *out);
/* Asks the sources of the configuration what resources_new() will ask, so that a record has the
 * answers.  Opens nothing. */
void resources_fetch(const struct config *);
void resources_free(struct resources *);

/* Each returns NULL if the configuration does not name it. */
const struct root *resources_root(const struct resources *, const char *dir);
struct logfile *resources_log(const struct resources *, const char *path);
/* PAGES of them, by status */
const struct page *resources_pages(const struct resources *, const char *prefix);
const struct mime *resources_mime(const struct resources *, const struct conf_map *assign);
const struct targets *resources_targets(const struct resources *);
/* numbers from 0; its names may get other addresses (proxy-core/backends.h) */
struct backends *resources_backends(const struct resources *, int proxy_number);
/* What RULES_name made of its setting; NULL: not set.  Two kinds may have one key: settings may
 * share a string. */
const void *resources_rules(const struct resources *, unsigned nr, const struct conf *);
/* The certificate of these values, with its key; NULL: they have none. */
const struct io_secure *resources_secure(const struct resources *, const struct conf *);
/* Who verifies certificates of clients; NULL: they need none. */
struct tls_verifier *resources_verifier(const struct resources *, const struct conf *);
/* Those of all sockets and hosts. */
struct certificates *resources_certificates(const struct resources *);
struct verifiers *resources_verifiers(const struct resources *);
struct ticket_file *resources_tickets(const struct resources *); /* keys of session tickets */
/* The directory of a user, for userdir; NULL: none. */
const char *resources_home(const struct resources *, struct text user);
const struct rewrite *resources_rewrite(const struct resources *, const struct conf_map *);

#endif
