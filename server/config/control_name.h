/* server/config/control_name.h -- the socket of accel-server ctl: of the server, its helper and ctl
 * itself.
 */
#ifndef SERVER_CONFIG_CONTROL_NAME_H
#define SERVER_CONFIG_CONTROL_NAME_H

#include "server/config/config.h"

/* "unix:PATH", which lives as long as the program; NULL: there is none */
const char *control_name(const struct conf *);

#endif
