/* server/module/dirlisting.h -- dir-listing.*: the page of a directory without an index file.
 *
 *   directory() of module.h  --------+-- page in memory, directory unchanged --> reply
 *                                     +-- being made: joins the others ----+
 *                                     '-- io/dir_list.h, in a thread ------+--> reply, later
 *
 * Bounds   LISTINGS_MAX pages and LISTINGS_BYTES of each worker; the one unused for longest goes.
 * Thread   the worker's.
 */
#ifndef SERVER_MODULE_DIRLISTING_H
#define SERVER_MODULE_DIRLISTING_H

#include <stdbool.h>

struct file_entry;
struct request;
struct site;
struct worker_base;

void dirlisting_forget(struct worker_base *, const struct site *); /* its pages: the site ends */

#endif
