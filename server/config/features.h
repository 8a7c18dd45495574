/* server/config/features.h -- server.feature-flags: the keys of lighttpd's map that mean something here. */
#ifndef SERVER_CONFIG_FEATURES_H
#define SERVER_CONFIG_FEATURES_H

#include "server/config/config.h"

uint64_t features_graceful_s(const struct conf *); /* how long a drain may take, seconds; 0: for ever */

#endif
