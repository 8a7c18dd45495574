/* base/utf8.h -- foreign text in logs and on pages: characters that may be shown, and odd ones that
 * would mislead a reader.
 *
 *   "caf\u00e9 \u202egpj.exe\x9b31m"
 *      |        |     |      `- odd: the byte 9b
 *      |        |     `- shown: "gpj.exe"
 *      |        `- odd: U+202E
 *      `- shown: "caf\u00e9 "
 *
 * Odd are: control characters (U+0000-1F, 7F, 80-9F), directional marks and overrides (U+061C,
 * 200E, 200F, 202A-202E, 2066-2069), line and paragraph separators (U+2028, 2029), the byte order
 * mark (U+FEFF), and bytes that are not UTF-8.  Pure, linear.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/text.h"

#define UTF8_NONE UINT32_MAX

/* Removes a run that may be shown, and the odd character (or byte) after it, from the front of *t.
 * *odd is empty if the run ends the text.  Removes at least a byte of a text that is not empty. */
struct text utf8_visible(struct text *t, struct text *odd);
/* As utf8_visible(), with `"` and `\` as odd characters, too. */
struct text utf8_quotable(struct text *t, struct text *odd);
/* The only character of t; UTF8_NONE: t is not one well-formed character. */
uint32_t utf8_char(struct text t);
bool utf8_is_valid(struct text t); /* all of t is well-formed */

#endif
