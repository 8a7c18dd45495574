/* server/module/target.h -- what url.redirect and url.rewrite-* compare: the target of a request in
 * one spelling.
 *
 *   /a%2fb/../%61?%41=%20   is refused (%2F)
 *   //a/./b%2c?q=%7e        /a/b%2C?q=~
 *
 * Escapes of letters, digits and "-._~" are decoded, others are in upper case; a byte that a URL
 * cannot have is an escape; steps are removed.  So no spelling of a path escapes a rule.
 */
#ifndef SERVER_MODULE_TARGET_H
#define SERVER_MODULE_TARGET_H

#include "server/module/pattern.h"

struct request;

/* Applies the rules of a setting to the request.  block: the one that sets it.  *out is empty, the
 * caller frees it; *rule: the number of the rule that matched.  0, or the status of a refusal,
 * which is logged. */
int target_apply(struct request *, const struct patterns *, unsigned block, const char *setting,
    struct buf *out, size_t *rule);
/* False for "OPTIONS *", and for the name of an index file, which no client has asked for. */
bool target_counts(const struct request *);

#endif
