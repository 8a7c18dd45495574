/* base/option.h -- the command line of a program: one table for the parser, --help and the manual.
 *
 *	static const struct option rows[] = {
 *		{ "threads", 't', "N", OPTION_NUMBER, offsetof(struct options, threads), .min = 1,
 *		    .max = 1024, .def = "20", .prose = "Threads that open files." },
 *		OPTION_HELP_ROW, { NULL } };
 *
 * A wrong value ends the parsing with one line on standard error:
 *
 *	fcgi-stat-accel: --threads: expected 1 to 1024, got "x"
 *
 * Owner    texts and lists live until the process ends.
 * Thread   the one that starts the program.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/manpage.h"

enum option_kind {
	OPTION_FLAG,   /* bool */
	OPTION_COUNT,  /* unsigned: grows by .min up to .max each time */
	OPTION_NUMBER, /* unsigned, from .min to .max */
	OPTION_SIZE,   /* uint64_t, from .min to .max; the text may end with k, m or g */
	OPTION_WORD,   /* unsigned or an enum: .min for the first of the words in .arg, and so on */
	OPTION_TEXT,   /* const char * */
	OPTION_NAMES,  /* const char *const *: "a,b"; NULL at the end, NULL for "" */
	OPTION_REPEAT, /* const char *const *: each use adds a text; NULL at the end */
	OPTION_OWN,    /* .read stores the value */
	OPTION_IGNORED, /* accepted without effect */
	OPTION_HELP,
};

struct option {
	const char *name;
	char letter;     /* '\0': none */
	const char *arg; /* "FILE"; OPTION_WORD: "text|roff"; NULL: the option takes no value */
	enum option_kind kind;
	size_t at; /* offset of the value in the values of options_parse() */
	uint64_t min, max;
	const char *def;   /* the value without this option; NULL: unchanged */
	const char *unit;  /* OPTION_NUMBER: "seconds"; NULL */
	const char *alone; /* the value of "--name" without a value; NULL: one is required */
	const char *prose;
	/* A check, or the reader of OPTION_OWN; NULL: every text is accepted.  False: the text is
	 * not as .expected says.
	 */
	bool (*read)(const char *text, void *at);
	const char *expected;
};

#define OPTION_HELP_ROW                                                       \
	{                                                                     \
		"help", 'h', NULL, OPTION_HELP, .prose = "Print the options." \
	}

struct command {
	const char *name, *usage;     /* "accel-warm", "[OPTION]... PATH..." */
	const char *about;            /* lines for the end of --help */
	const struct option *options; /* .name NULL at the end */
};

#define OPTIONS_RUN (-1)

/* As the first word of a command line: prints the rows for scripts/completion, one per line, as
 * name, letter, arg, "?" if the value may be missing, and prose, with tabs between them. */
#define OPTION_TABLE "--option-table"

/* OPTIONS_RUN, or the exit status: 0 after --help, 64 after a mistake that has been reported.
 * *rest: the words after the options, NULL at the end; NULL: none.  The next call frees it. */
int options_parse(const struct command *, char **argv, void *values, const char *const **rest);

/* Takes the messages of options_wrong(), each one or more whole lines; NULL: standard error. */
void options_tell(void (*tell)(struct text lines));
/* Writes "NAME: ..."; returns 64. */
int options_wrong(const struct command *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The section OPTIONS, and its items without their heading. */
void options_manual(struct manpage *, const struct option *);
void options_items(struct manpage *, const struct option *);

/* Appends the text as OPTION_REPEAT does, for an OPTION_OWN that checks each text first; true. */
bool options_append(const char *text, void *list);

/* These print on standard output and return the exit status. */
int options_out(struct buf *); /* frees the buffer */
int options_print(void (*page)(struct manpage *), bool roff);

/* The path of another program of the kit, next to this program; or its name, for PATH.  Free it
 * with g_free(). */
char *options_program(const char *name);

#endif
