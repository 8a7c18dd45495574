/* base/must.h -- for conditions that cannot be false.  Stays on in production.
 *
 * Errors that can happen (a full disk, a hostile peer) are error codes, never a must().
 */
#ifndef BASE_MUST_H
#define BASE_MUST_H

void must_failed(const char *expr, const char *file, int line) __attribute__((noreturn, cold));

#define must(e) (__builtin_expect(!(e), 0) ? must_failed(#e, __FILE__, __LINE__) : (void)0)

#define container_of(p, type, field) ((type *)((char *)(p) - __builtin_offsetof(type, field)))
#define NELEM(a)                     (sizeof(a) / sizeof((a)[0]))

#endif
