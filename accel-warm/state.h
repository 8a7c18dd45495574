/* accel-warm/state.h -- what is finished, in a file, so that a run that was killed can go on.
 *
 *	accel-warm state 1
 *	warm=read:131072                     what the run was asked for; another one may not use this file
 *	root=/srv/www
 *
 *	6f1c...32 hexadecimal digits         one line per finished batch, its key (batch.h)
 *	90ab...
 *
 * The next run reads every directory again, and leaves out a batch when its key stands here.  So nothing is lost: a key
 * is written after the last name of its batch was touched, and covers all its names and inodes; what is new or changed
 * has another key.  What is done twice: batches that were under way, and those of the last two seconds.
 *
 * The head is written to a file beside it, which then takes its name.  Lines are appended, each whole by itself; a
 * broken last one is overwritten.  When the disk is full, what is there stays, and what could not be written is tried again.
 *
 * Thread   walk_state_knows() and walk_state_note(): any.  The rest: one.
 * Errors   -errno; text for people in *why, to be freed with g_free().
 */
#ifndef ACCEL_WARM_STATE_H
#define ACCEL_WARM_STATE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "accel-warm/conf.h"

struct walk_state;

/* The head that a run with these options writes. */
void walk_state_head(const struct walk_conf *, const char *cwd, GString *);

GHashTable *walk_state_keys(void);	/* an empty set of keys */

/* Keys of a file's text into *keys; its length up to the last whole line.  -EPROTO: it is no state file;
 * -EBUSY: of a run with other options, *why says which. */
gssize walk_state_parse(const char *text, gsize n, const char *head, GHashTable *keys, char **why);

int  walk_state_open(const char *path, const char *head, struct walk_state **, char **why);
void walk_state_close(struct walk_state **);
void walk_state_remove(struct walk_state **);	/* all is done */

bool walk_state_knows(const struct walk_state *, const uint8_t *key);
void walk_state_note(struct walk_state *, const uint8_t *key);
int  walk_state_save(struct walk_state *);	/* what was noted is on the disk */
unsigned walk_state_known(const struct walk_state *);	/* batches of earlier runs */

#endif
