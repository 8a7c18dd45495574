/* server/config/check/log_names.h -- from the settings of logs to the names of io/log/logfile.h.
 *
 * The names live as long as the program, so they may be compared and kept.
 * Thread   any.
 */
#ifndef SERVER_CONFIG_LOG_NAMES_H
#define SERVER_CONFIG_LOG_NAMES_H

#include "server/config/config.h"

const char *log_name_access(const struct conf *); /* NULL: there is none */
const char *log_name_error(const struct conf *);  /* NULL: standard error */

#endif
