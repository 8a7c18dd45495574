/* base/utf8.h -- text of others in logs and on pages: what may be shown as it is, and what would mislead a reader.
 *
 *   "caf\u00e9 \u202egpj.exe\x9b31m"   -->  shown: "caf\u00e9 "   odd: U+202E   shown: "gpj.exe"   odd: the byte 9b   ...
 *
 * Odd are: control characters (U+0000-1F, 7F, 80-9F), directional marks and overrides (U+061C, 200E, 200F, 202A-202E,
 * 2066-2069), line and paragraph separators (U+2028, 2029), the byte order mark (U+FEFF), and bytes that are no UTF-8.
 * Pure, linear.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/text.h"

#define UTF8_NONE UINT32_MAX

/* Takes a run that may be shown, and the odd character (or byte) behind it, off the front of *t: *odd is empty when the run
 * ends with the text.  Takes at least a byte of a text that is not empty. */
struct text utf8_visible(struct text *t, struct text *odd);
/* The same where `"` and `\` are odd too. */
struct text utf8_quotable(struct text *t, struct text *odd);
/* The character that t is; UTF8_NONE: not one, well-formed. */
uint32_t utf8_char(struct text t);

#endif
