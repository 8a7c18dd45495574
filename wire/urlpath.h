/* wire/urlpath.h -- from a request target to a path that cannot climb.
 *
 * Pure.  Decodes once, refuses NUL and bad %XX, treats an encoded slash (%2F) and a backslash as what
 * nobody should ever see in a file name (refused), removes "." and ".." segments after decoding,
 * folds runs of slashes.  The result starts with '/', holds no segment ".." or ".", and keeps a
 * trailing slash.
 */
#ifndef WIRE_URLPATH_H
#define WIRE_URLPATH_H

#include "base/text.h"

/* dst holds at least path.n + 1 bytes.  Returns the length (NUL behind it), or -EINVAL (bad escape, NUL,
 * no leading slash), -EPERM (encoded slash, or ".." above the root). */
int urlpath_clean(struct text path, char *dst);

/* Percent-decodes t to dst (t.n + 1 bytes).  Length, or -EINVAL for a bad escape or a NUL. */
int urlpath_decode(struct text t, char *dst);

/* t with escapes of letters, digits and "-._~" decoded (RFC 3986, 6.2.2) and the others in upper case; what is no
 * escape stays.  dst holds t.n bytes.  Returns the length. */
size_t urlpath_plain(struct text t, char *dst);

#endif
