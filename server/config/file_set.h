/* server/config/file_set.h -- the files that settings of TLS name, as they are in a record, and
 * which of their versions are in use.
 *
 *   file_set_add() ... --> file_set_read() --> file_set_text(), made_of_others()
 *
 * Owner    the caller; names are lent, they are those of the configuration.
 */
#ifndef SERVER_CONFIG_FILE_SET_H
#define SERVER_CONFIG_FILE_SET_H

#include "server/config/record.h"

struct conf_refusal;

#define FILE_SET_MAX 5u

struct file_set {
	unsigned n;
	struct setting_file {
		const char *directive, *name; /* name NULL: not set */
		bool optional;                /* it may be missing */
		struct source is;
	} v[FILE_SET_MAX];
};

/* name NULL or empty: not set.  The numbers of files are in the order of the calls. */
void file_set_add(struct file_set *, const char *directive, const char *name, bool optional);
void file_set_read(struct file_set *, struct sources *);
void file_set_free(struct file_set *);
/* False: one is missing, and is refused. */
bool file_set_is_there(const struct file_set *, const struct conf_refusal *);
/* .p NULL: it is not set, or missing. */
struct text file_set_text(const struct file_set *, unsigned nr);

/* Digests of what the files had; NULL: none. */
struct made_of {
	char *used, *refused; /* refused NULL: they are in use */
};

/* The files have something new, which has neither been used nor refused. */
bool made_of_others(struct made_of *, const struct file_set *);
void made_of_note(struct made_of *, const struct file_set *, bool used);
void made_of_free(struct made_of *);

#endif
