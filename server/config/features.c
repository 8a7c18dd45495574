/* server/config/features.c -- server.feature-flags: the only key of lighttpd's map that has an
 * effect here.
 */
#include "server/config/impl.h"

#define GRACEFUL_KEY   "server.graceful-shutdown-timeout"
#define GRACEFUL_MAX_S 86400u

bool
cfg_features_check(struct config *cfg, struct cfg_pos pos, const struct conf_map *m)
{
	size_t i;

	for (i = 0; i < m->n; i++) {
		uint64_t *v = &cfg->global.graceful_s;

		if (!text_eq(m->v[i].key, TEXT(GRACEFUL_KEY)))
			cfg_warn(cfg, pos,
			    "server.feature-flags: \"%s\" has no effect here; the only known flag "
			    "is \"" GRACEFUL_KEY "\"",
			    m->v[i].key.p);
		else if (text_u64(m->v[i].value, v) != 0 || *v > GRACEFUL_MAX_S)
			return (cfg_error(cfg, pos,
			    "server.feature-flags: \"" GRACEFUL_KEY
			    "\": expected 0 to %u seconds, got \"%s\"",
			    GRACEFUL_MAX_S, m->v[i].value.p));
	}
	return (true);
}
