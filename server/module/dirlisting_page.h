/* server/module/dirlisting_page.h -- the page of a directory, made in a thread from its entries.
 *
 * Names are bytes of others: in the text they are escaped for HTML, in links for URLs.
 */
#ifndef SERVER_MODULE_DIRLISTING_PAGE_H
#define SERVER_MODULE_DIRLISTING_PAGE_H

#include "io/dir_list.h"

enum dirlisting_sort { DIR_BY_NAME, DIR_BY_SIZE, DIR_BY_TIME };

struct dirlisting_look { /* texts that are empty are left out */
	struct text url; /* decoded, with a slash at its end */
	struct text encoding, css, js, footer;
	bool layout, sorted, encode[DIR_TEXTS];
	enum dirlisting_sort sort;
	bool down;
};

/* Sorts the entries.  The first text stands above them, the second below. */
void dirlisting_page(struct buf *out, struct dir_list *, const struct dirlisting_look *);

#endif
