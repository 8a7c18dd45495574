/* wire/urlpath.h -- turns a request target into a path that cannot leave the root.
 *
 * Pure.  Decodes once.  Refuses NUL, bad %XX, an encoded slash (%2F) and a backslash, which no file
 * name should contain, and segments that become ".", ".." or nothing where a servlet container cuts
 * ";..." off ("/..;x/").  Removes "." and ".." segments after decoding, and folds runs of slashes.
 * The result starts with '/', has no segment ".." or ".", and keeps a trailing slash.
 */
#ifndef WIRE_URLPATH_H
#define WIRE_URLPATH_H

#include "base/text.h"

/* dst has space for path.n + 1 bytes.  Returns the length (with a NUL after it), or -EINVAL (bad
 * escape, NUL, no leading slash), -EPERM (encoded slash, backslash, ".." above the
 * root, or a hidden step). */
int urlpath_clean(struct text path, char *dst);

/* Options of server.http-parseopts, in addition to these rules. */
enum {
	URLPATH_SLASHES = 1,     /* an encoded slash separates segments instead of being refused */
	URLPATH_NO_STEPS = 2,    /* segments "." and ".." are refused instead of being removed */
	URLPATH_NO_CONTROLS = 4, /* refuses bytes below 32 and 127, decoded, in the query, too */
	URLPATH_UTF8 = 8         /* the decoded path and query must be UTF-8 */
};
/* As urlpath_clean(), with such bits.  dst has space for path.n + query.n + 1 bytes. */
int urlpath_clean_as(struct text path, struct text query, unsigned how, char *dst);
bool urlpath_has_slashes(struct text path); /* an encoded slash */

/* As urlpath_clean(), for a path that another server has accepted and looks up: an encoded slash
 * separates segments, and a backslash and ';' are bytes of a name. */
int urlpath_name(struct text path, char *dst);

/* True if urlpath_clean() removes a segment "." or "..", even an encoded one. */
bool urlpath_has_steps(struct text path);

/* Without dots and spaces at its end: some file systems know "a.php." as "a.php". */
struct text urlpath_without_dots(struct text path);

/* Percent-decodes t to dst (t.n + 1 bytes).  Returns the length, or -EINVAL for a bad escape or
 * a NUL. */
int urlpath_decode(struct text t, char *dst);

/* Copies t to dst (t.n bytes) with escapes of letters, digits and "-._~" decoded (RFC 3986, 6.2.2)
 * and other escapes in upper case; bad escapes stay.  Returns the length. */
size_t urlpath_plain(struct text t, char *dst);

/* Bytes that urlpath_escape() leaves as they are, besides letters, digits and "-._~". */
#define URL_SLASH    2u  /* / */
#define URL_DELIMS   4u  /* ! $ & ' ( ) * + , : ; = @ */
#define URL_QUESTION 8u  /* ? */
#define URL_OUTSIDE  16u /* # [ ], which a whole URL may have */
#define URL_ESCAPES  32u /* %XX, in upper case; of letters, digits and "-._~" it is decoded */
/* A path or a target as clients send it, a path that was decoded, and a whole URL. */
#define URL_OF_TARGET  (URL_SLASH | URL_DELIMS | URL_QUESTION | URL_ESCAPES)
#define URL_OF_DECODED (URL_SLASH | URL_DELIMS)
#define URL_WHOLE      (URL_OF_TARGET | URL_OUTSIDE)

/* Copies t to dst (3 * t.n bytes); all bytes but those of keep become %XX.  Returns the length. */
size_t urlpath_escape(struct text t, unsigned keep, char *dst);
/* True if urlpath_escape() changes nothing, and there is no %XX. */
bool urlpath_is_plain(struct text t, unsigned keep);
/* Removes steps and empty segments from an encoded path, as urlpath_clean() does; a path that
 * urlpath_clean() accepts.  Returns the length. */
size_t urlpath_drop_steps(char *path, size_t n);

#endif
