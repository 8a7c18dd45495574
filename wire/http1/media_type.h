/* wire/http1/media_type.h -- the charset of a media type.  Pure.
 *
 *   text/html                          --> text/html; charset=koi8-r
 *   text/html; charset=utf-8; x=y      --> text/html; x=y; charset=koi8-r
 *   image/png                          --> image/png
 */
#ifndef WIRE_MEDIA_TYPE_H
#define WIRE_MEDIA_TYPE_H

#include "base/text.h"

#define MEDIA_TYPE_MORE 10u /* bytes that are neither of the type nor of the charset */

/* Only a text type gets a charset.  dst has space for both and MEDIA_TYPE_MORE bytes.  Returns the
 * length. */
size_t media_type_charset(char *dst, struct text type, struct text charset);

#endif
