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

/* dst has space for path.n + 1 bytes.  Returns the length (with a NUL behind it), or -EINVAL (bad
 * escape, NUL, no leading slash), -EPERM (encoded slash, backslash, ".." above the
 * root, or a hidden step). */
int urlpath_clean(struct text path, char *dst);

/* As urlpath_clean(), for a path that another server has accepted and looks for: an encoded slash
 * separates segments, and a backslash and ';' are bytes of a name. */
int urlpath_name(struct text path, char *dst);

/* True if urlpath_clean() removes a segment "." or "..", also a decoded one. */
bool urlpath_has_steps(struct text path);

/* Percent-decodes t to dst (t.n + 1 bytes).  Returns the length, or -EINVAL for a bad escape or
 * a NUL. */
int urlpath_decode(struct text t, char *dst);

/* Copies t to dst (t.n bytes) with escapes of letters, digits and "-._~" decoded (RFC 3986, 6.2.2)
 * and other escapes in upper case; bad escapes stay.  Returns the length. */
size_t urlpath_plain(struct text t, char *dst);

#endif
