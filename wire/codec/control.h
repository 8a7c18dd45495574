/* wire/codec/control.h -- header fields between an application and this server, such as X-Sendfile.
 *
 * The table is controls.def.  A name of the table, or of one of its families, passes in neither
 * direction.  reply_head_sort() puts the values into proxy_reply.control.
 *
 * Pure.  This layer parses a value; server/handler/ decides whether it is allowed, and acts on it.
 */
#ifndef WIRE_CONTROL_H
#define WIRE_CONTROL_H

#include "base/text.h"

enum control {
#define C(id, ...) CONTROL_##id,
#define F(prefix)
#include "wire/codec/controls.def"
#undef C
#undef F
	CONTROLS /* the number of rows; as a result: no row */
};

enum control_value {
	CONTROL_PATH,
	CONTROL_PIECES,
	CONTROL_URI,
	CONTROL_URL,
	CONTROL_SWITCH,
	CONTROL_NUMBER,
	CONTROL_TIME,
	CONTROL_NAME,
	CONTROL_HOST,
	CONTROL_BACKEND
};
enum control_asks { CONTROL_ANSWER, CONTROL_HINT, CONTROL_ROUTE };
enum control_allowed {
	CONTROL_BY_SENDFILE,
	CONTROL_BY_TEMPDIR,
	CONTROL_BY_REPROXY,
	CONTROL_BY_REWRITE,
	CONTROL_BY_ALWAYS
};

struct control_row {
	struct text name;
	enum control_value value;
	enum control_asks asks;
	enum control_allowed allowed;
	const char *doc;
};
extern const struct control_row controls[CONTROLS];
const char *control_value_name(enum control_value); /* "PATH": for manuals */
const char *control_setting(enum control_allowed);  /* NULL: it needs none */

/* Row of a field name; CONTROLS: none. */
enum control control_find(struct text name);
/* True for a row and for a name of a family, in both directions. */
bool header_is_control(struct text name);

#define CONTROL_NAME_MAX 64u /* bytes of a value of kind NAME */
/* NULL, or what is wrong with the value.  PIECES, and whether a path may be sent, are judged
 * elsewhere. */
const char *control_fault(enum control_value, struct text value);
/* Splits "http://host:port/path?query"; both are slices of it, and the target begins with '/'.
 * False: not such a URL, or one with a user, a fragment or other bytes than visible ASCII. */
bool control_url(struct text url, struct text *authority, struct text *target);

#endif
