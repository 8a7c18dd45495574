/* server/config/ticket_file.h -- the file of ssl.stek-file: the key of session tickets that several
 * machines share.
 *
 *   ssl.stek-file --> io/tls/stek.h
 *
 * Clients can do without, so a file that cannot be used stops nothing: the last keys stay until
 * they end.
 *
 * Owner    struct resources.
 * Thread   ticket_file_new() at start and at reload, may block; the others at any time; one thread.
 */
#ifndef SERVER_CONFIG_TICKET_FILE_H
#define SERVER_CONFIG_TICKET_FILE_H

#include <stdbool.h>
#include "server/config/certificates.h"

struct ticket_file;

struct ticket_file *ticket_file_new(const struct config *);
/* The configuration is used from now on. */
void ticket_file_use(struct ticket_file *);
/* For certificates_files(). */
void ticket_file_add(const struct conf *, void (*fn)(const char *file, void *arg), void *arg);
/* As certificates_renew(). */
void ticket_file_renew(struct ticket_file *, const struct config *, struct sources *,
    certificates_news *, void *arg);
bool ticket_file_refused(const struct ticket_file *); /* the last keys are in use */
/* As resources_warn(). */
void ticket_file_warn(const struct ticket_file *, const struct config *, struct buf *out);
void ticket_file_free(struct ticket_file *); /* NULL is allowed */

#endif
