/* server/module/dirlisting_rules.h -- settings of dir-listing.* that are compiled once. */
#ifndef SERVER_MODULE_DIRLISTING_RULES_H
#define SERVER_MODULE_DIRLISTING_RULES_H

#include <stdint.h>
#include "base/text.h"
#include <stdbool.h>

/* Names that are not listed: dir-listing.exclude.  Counted, any thread. */
struct site;
struct dir_names;
struct dir_names *dir_names_get(const void *rules); /* NULL: none */
void dir_names_put(struct dir_names *);             /* NULL is allowed */
bool dir_names_has(const struct dir_names *, struct text name);

const char *dirlisting_file(const void *rules); /* a file above or below the entries; NULL: none */
uint64_t dirlisting_max_age(const struct site *); /* seconds that a page may be used again */

#endif
