/* server/module/dirlisting.h -- dir-listing.*: the page of a directory without an index file.
 *
 *   handler --> dirlisting_start()  --+-- page in memory, directory unchanged --> reply
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

/* dir: of the look-up of the directory, which r->scope and r->lookup name. */
enum handled dirlisting_start(struct request *, const struct file_entry *dir);
void dirlisting_stop(struct request *); /* also if it waits for nothing */
void dirlisting_forget(struct worker_base *, const struct site *); /* its pages: the site ends */

#endif
