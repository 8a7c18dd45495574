/* walk/state.h -- finished work in a file, so that a killed run can be resumed.
 *
 * 	accel-warm state 1
 * 	warm=read:131072                     the options of the run; no other run may use the file
 * 	root=/srv/www
 *
 * 	6f1c...32 hexadecimal digits         one line per finished batch, its key (batch.h)
 * 	90ab...
 *
 * The next run reads every directory again, and skips a batch if its key is in the file.  No work
 * is lost: a key is written after the last name of its batch was touched, and covers all its names
 * and inodes, so new and changed files have another key.  Unfinished batches, and those of the
 * last two seconds, are done again.
 *
 * The head is written to a second file, which then replaces the first.  Lines are appended whole; a
 * broken last line is overwritten.  When the disk is full, the written lines stay, and the next
 * save tries again.
 *
 * Thread   walk_state_knows() and walk_state_note(): any.  The rest: one.
 * Errors   -errno; a message in *why, to be freed with g_free().
 */
#ifndef WALK_STATE_H
#define WALK_STATE_H

#include <glib.h>
#include <stdbool.h>

#include "walk/conf.h"

struct walk_state;

/* Writes the head of a run with these options. */
void walk_state_head(const struct walk_conf *, const char *cwd, GString *);

/* Puts the keys in text (with a NUL after it) into *keys, a set of strings.  Returns its length up
 * to the last whole line.  -EPROTO: not a state file; -EBUSY: the file of a run with other options;
 * *why tells which. */
gssize walk_state_parse(const char *text, gsize n, const char *head, GHashTable *keys, char **why);

int walk_state_open(const char *path, const char *head, struct walk_state **, char **why);
void walk_state_close(struct walk_state **);
void walk_state_remove(struct walk_state **); /* call it when all work is done */

bool walk_state_knows(const struct walk_state *, const char *key);
void walk_state_note(struct walk_state *, const char *key);
int walk_state_save(struct walk_state *); /* writes the noted batches to the disk */

#endif
