/* accel-pool/options.h -- the commands of accel-pool, each with its options. */
#ifndef ACCEL_POOL_OPTIONS_H
#define ACCEL_POOL_OPTIONS_H

#include "accel-pool/spec.h"
#include "base/option.h"
#include "walk/conf.h"

struct pool_conf {
	struct walk_conf walk; /* also .threads, .json, .quiet and .verbose of all commands */
	const char *const *specs;
	const char *const *words; /* the directories */
	uint64_t seed;
	bool sync, force;
	/* list: */
	const char *log, *base, *prefix;
	const char *const *status;
	bool shuffle, unique;
	uint64_t min, max, limit;
	/* of all: */
	unsigned manual; /* 1: as text, 2: as roff */
	bool version;
};

struct pool_command {
	struct command command;
	const char *word;   /* "make" */
	const char *about;  /* a line for --help of accel-pool, and the manual */
	unsigned max_words; /* directories; at least one, except with --list or --log */
	bool list;          /* --list may stand for the directory */
	int (*run)(struct pool_conf *);
};

extern const struct pool_command pool_commands[]; /* .word NULL at the end */
extern const struct command pool_program;

void pool_manual(struct manpage *);

/* OPTIONS_RUN and *which, or the exit status. */
int pool_options_read(char **argv, struct pool_conf *, const struct pool_command **which);

int pool_make(struct pool_conf *);
int pool_remove(struct pool_conf *);
int pool_list(struct pool_conf *);
int pool_evict(struct pool_conf *);
int pool_state(struct pool_conf *);
int pool_check(struct pool_conf *);

#endif
