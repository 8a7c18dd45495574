/* server/config/impl.h -- shared by the files of server/config/; no other file includes it.
 *
 *   bytes --lex--> tokens --parse--> blocks of (key, value)
 *                                       `--table--> settings --view--> struct conf
 *
 * The parser computes values while it reads, because an include may name a file by a variable.  All
 * values are in one arena.  A value never changes after it was made, so values may be shared.
 * Errors   false (or NULL), with one line in cfg->err.  The text is untrusted: everything has a
 *          bound.
 */
#ifndef SERVER_CONFIG_IMPL_H
#define SERVER_CONFIG_IMPL_H

#include <glib.h>
#include "base/arena.h"
#include "base/ip.h"
#include "base/match.h"
#include "server/config/config.h"
#include "server/config/record.h"

#define CFG_TOTAL_MAX  (16u << 20) /* bytes of all files together */
#define CFG_MEMORY_MAX (64u << 20) /* limit of all values: `var.a += var.a` doubles a value */
/* Free memory that is checked for each (more than 32 MiB: malloc() then uses mmap()) ... */
#define CFG_SPARE       (33u << 20)
#define CFG_SPARE_EACH  (1u << 20) /* ... this many bytes of values. */
#define CFG_STRING_MAX  (1u << 20)
#define CFG_ITEMS_MAX   100000u /* members of a list, nested ones included */
#define CFG_NEST_MAX    32u     /* blocks in blocks, lists in lists */
#define CFG_INCLUDE_MAX 16u
#define CFG_BLOCKS_MAX  20000u
#define CFG_HEADERS_MAX 64u /* different ones that conditions compare */
/* Merged confs that one view keeps: clients choose which conditions are true. */
#define CFG_SETS_MAX 4096u

struct cfg_pos {
	const char *file;
	uint32_t line, column; /* both from 1 */
};

/* Sets cfg->global.graceful_s from server.feature-flags.  False: its value is impossible, and an
 * error is reported.  Unknown keys get a warning. */
bool cfg_features_check(struct config *, struct cfg_pos, const struct conf_map *);
/* Sets cfg->global.url_checks from server.http-parseopts.  False: errors are reported. */
bool cfg_parseopts_check(struct config *, struct cfg_pos, const struct conf_map *);

/* proxy-core.*: what the table cannot say.  Needs cfg->global.  False: errors are reported. */
bool cfg_proxy_check(struct config *);
/* Checks the limits of check/limits.h.  Needs cfg->listens.  False: errors are reported. */
bool cfg_limits_check(struct config *);
/* True: the value of this setting is shown nowhere. */
bool cfg_is_secret(struct text key);

/* ---------------------------------------------------------------- tokens */

enum cfg_token_kind {
	TOK_END,
	TOK_EOL,
	TOK_KEY,
	TOK_STRING,
	TOK_INT,
	TOK_BAD, /* the lexer has reported an error */
	/* Marks; longer ones first, so that "=>" is not read as "=". */
	TOK_FIRST_MARK,
	TOK_APPEND = TOK_FIRST_MARK,
	TOK_FORCE,
	TOK_ARROW,
	TOK_EQ, /* from here to TOK_SUFFIX: the operators of conditions */
	TOK_NE,
	TOK_RE,
	TOK_NRE,
	TOK_PREFIX,
	TOK_SUFFIX,
	TOK_SET,
	TOK_PLUS,
	TOK_COMMA,
	TOK_PAREN_L,
	TOK_PAREN_R,
	TOK_BRACE_L,
	TOK_BRACE_R,
	TOK_BRACKET_L,
	TOK_BRACKET_R,
	TOK_DOLLAR
};

struct cfg_token {
	enum cfg_token_kind kind;
	struct text text; /* as written; a string without quotes and escapes, in the arena */
	uint64_t number;
	struct cfg_pos pos;
};

struct cfg_lexer {
	struct config *cfg;
	struct text rest;
	struct cfg_pos pos;
};

void cfg_lex_start(struct cfg_lexer *, struct config *, const char *file, struct text bytes);
struct cfg_token cfg_lex(struct cfg_lexer *);
/* Marks as they are written, the others in words. */
const char *cfg_token_name(enum cfg_token_kind);

/* ---------------------------------------------------------------- values */

enum cfg_kind { CFG_STR, CFG_INT, CFG_LIST };

struct cfg_item {
	struct text key; /* .p NULL: none */
	const struct cfg_value *value;
};

struct cfg_value {
	enum cfg_kind kind;
	uint32_t n, weight;           /* LIST: members; members including nested ones */
	struct text str;              /* STR; with a NUL after it */
	uint64_t num;                 /* INT */
	const struct cfg_item *items; /* LIST */
};

guint cfg_text_hash(gconstpointer text); /* hash of a struct text, for GHashTable */
gboolean cfg_text_same(gconstpointer, gconstpointer);
const struct cfg_value *cfg_value_str(struct config *, struct text);
/* Joins two strings. */
const struct cfg_value *cfg_value_join(struct config *, struct text, struct text);
const struct cfg_value *cfg_value_int(struct config *, uint64_t);
/* Refuses duplicate keys. */
const struct cfg_value *cfg_value_list(struct config *, struct cfg_pos, const struct cfg_item *,
    size_t n);
const struct cfg_value *cfg_value_add(struct config *, struct cfg_pos, const struct cfg_value *,
    const struct cfg_value *);
/* of STR and INT, with a NUL after it */
struct text cfg_value_text(struct config *, const struct cfg_value *);
const char *cfg_kind_name(enum cfg_kind);
void cfg_value_print(const struct cfg_value *, struct buf *);
/* Writes the value for an error message. */
void cfg_value_describe(const struct cfg_value *, struct buf *);

/* ---------------------------------------------------------------- conditions */

enum cfg_state {
	CFG_FALSE,
	CFG_TRUE,
	CFG_UNKNOWN,
	CFG_FAILED /* a regular expression reached a limit */
};

struct cfg_cond {
	enum cfg_token_kind op;
	const struct cfg_field *field; /* NULL: a bare else */
	struct text value;
	struct match *re;
	bool is_net;
	struct ip_net net;
};

const struct cfg_field *cfg_field_find(struct text group, struct text name); /* NULL: unknown */
/* A header of the request, by $REQUEST_HEADER["name"] or $HTTP["language"].  NULL: another field,
 * or an error that *fault says. */
const struct cfg_field *cfg_field_header(struct config *, struct text group, struct text name,
    const char **fault);
void cfg_field_names(struct buf *);
bool cfg_field_is_physical(const struct cfg_field *);
bool cfg_field_is_host(const struct cfg_field *);
bool cfg_field_is_socket(const struct cfg_field *);
/* The block of this socket; 0: it has none. */
unsigned cfg_socket_block(const struct config *, struct text socket);
/* ssl.engine, where it is set, is for this socket, too. */
bool cfg_socket_has_engine(const struct config *, struct text socket);
/* Endings in conditions around proxy-core.backends (check/endings.c); in the arena of
 * the config. */
const struct conf_list *cfg_condition_endings(struct config *);
bool cfg_cond_compile(struct config *, struct cfg_pos, struct cfg_cond *);
void cfg_cond_print(const struct cfg_cond *, struct buf *);
enum cfg_state cfg_cond_eval(const struct cfg_cond *, const struct conf_input *);
/* What its regular expression captures; with another operator $0 is the field.  False: nothing, the
 * condition does not hold. */
bool cfg_cond_capture(const struct cfg_cond *, const struct conf_input *,
    struct text cap[MATCH_CAPTURES]);
bool cfg_field_is_decoded(const struct cfg_field *); /* its value is a path without escapes */

/* ---------------------------------------------------------------- blocks */

struct cfg_entry {
	struct text key;
	const struct cfg_value *value;
	struct cfg_pos pos, value_pos;
};

/* The value of a directive, as struct conf stores it. */
struct cfg_setting {
	uint16_t directive;
	const void *data;
};

struct cfg_block {
	uint32_t ndx;             /* order of first appearance; 0 is the file itself */
	struct cfg_block *parent; /* the outer block */
	struct cfg_block *prev;   /* the block before this `else` */
	struct cfg_cond cond;
	struct cfg_pos pos;
	GPtrArray *entries; /* struct cfg_entry, in the order of the file */
	GHashTable *by_key; /* the same, by struct text; NULL while there are none */
	GArray *settings;   /* struct cfg_setting */
	/* proxy-core.backends, if the block sets it */
	const struct cfg_entry *backends;
	bool around_backends;  /* an inner block sets a list of backends */
	uint32_t proxy_number; /* its number among the lists of backends */
	bool has_authorizer;   /* the block sets proxy-core.authorizer */
	uint32_t authorizer_number;
};

struct config {
	struct arena mem;
	GPtrArray *blocks;       /* struct cfg_block; [0] is the file itself */
	GHashTable *block_names; /* condition text with parent and prev -> struct cfg_block */
	GPtrArray *listens;      /* char * */
	GArray *modules;         /* struct cfg_entry: what server.modules was made of */
	struct buf *err, *warn;
	size_t bytes;  /* bytes read so far */
	size_t proved; /* up to this many bytes of mem, memory was checked */
	unsigned errors, warnings;
	uint32_t nproxies; /* lists of backends: proxy-core.backends and proxy-core.authorizer */
	/* No include, no include_shell, no env, no check of free memory: for fuzzing. */
	bool sandboxed;
	struct sources *sources; /* NULL: ask the system */
	char *dir;               /* of the main file: includes are relative to it */
	struct conf global;
	GPtrArray *headers; /* struct cfg_field: the headers that conditions compare */
	bool uses_physical;
};

struct config *cfg_new(struct buf *err, struct buf *warn); /* with the outermost block only */
void *cfg_get(struct config *, size_t n);                  /* from the arena, filled with zeros */
/* reports an error and returns false if n more are too many */
bool cfg_grows(struct config *, struct cfg_pos, size_t n);
/* Always returns false, so that a function can end with it. */
bool cfg_error(struct config *, struct cfg_pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void cfg_warn(struct config *, struct cfg_pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

struct cfg_block *cfg_block_root(struct config *);
/* The block of this condition below parent; made if it is new.  NULL: too many blocks. */
struct cfg_block *cfg_block_open(struct config *, struct cfg_pos, struct cfg_block *parent,
    struct cfg_block *prev, struct cfg_cond *);
/* of this block only */
struct cfg_entry *cfg_entry_find(const struct cfg_block *, struct text key);
/* of this block or the nearest one around it; b NULL: none */
const struct cfg_entry *cfg_entry_around(const struct cfg_block *b, struct text key);
/* where a block, or the nearest one around it, sets one of these directives; NULL: none does */
const struct cfg_entry *cfg_entry_of(const struct config *, const struct conf *, const char *names);
bool cfg_assign(struct config *, struct cfg_block *, enum cfg_token_kind op, struct cfg_entry);
const struct cfg_value *cfg_lookup(struct config *, const struct cfg_block *, struct text key,
    struct cfg_pos);
/* a name without a dot becomes var.KEY */
struct text cfg_full_key(struct config *, struct text key);

/* ---------------------------------------------------------------- files */

struct cfg_source {
	const char *name; /* for messages */
	char *real;       /* the resolved path; NULL for a command or given text */
	struct text bytes;
	struct cfg_source *outer;
	unsigned depth;
};

bool cfg_source_file(struct config *, struct cfg_pos, const char *path, struct cfg_source *outer,
    struct cfg_source *);
bool cfg_source_shell(struct config *, struct cfg_pos, const char *command,
    struct cfg_source *outer, struct cfg_source *);
void cfg_source_free(struct cfg_source *);
/* free it with g_strfreev(); NULL: reported */
char **cfg_source_paths(struct config *, struct cfg_pos, const char *pattern);

bool cfg_parse(struct config *, struct cfg_source *);
/* fastcgi.server and the like become blocks of proxy-core;
 * see server/config/lighttpd/translate.h. */
bool cfg_translate(struct config *);

/* ---------------------------------------------------------------- the table */

/* Reports a key that is not a directive, as an error or a warning. */
void cfg_refused(struct config *, const struct cfg_entry *);
/* Remembers an assignment to server.modules, with its place. */
void cfg_modules_add(struct config *, enum cfg_token_kind op, const struct cfg_entry *);
/* Reports modules that are not built in.  Needs the whole file. */
void cfg_modules_check(struct config *);
enum dir_type {
	DT_BOOL,
	DT_UINT,
	DT_STR,
	DT_LIST,
	DT_MAP,
	DT_MAPS,
	DT_ALIAS,
	DT_NOP,
	DT_OLD,
	DT_BLOCK
};

/* Puts e->value into the field *out.  False: not of the type or the limits of d; reported. */
bool cfg_convert(struct config *, const struct cfg_entry *e, const struct directive *d,
    enum dir_type, void *out);
/* Reports settings of pools that do not fit each other.  The types of all values are right. */
void cfg_pools_check(struct config *);
bool cfg_table_check(struct config *); /* fills the settings of each block and cfg->global */
void cfg_table_defaults(struct config *, struct conf *);
void cfg_table_apply(const struct cfg_block *, struct conf *);

/* Reads text instead of a file; sandboxed as above.  For tests. */
struct config *config_load_text(const char *name, struct text, bool sandboxed, struct buf *err,
    struct buf *warn);

#endif
