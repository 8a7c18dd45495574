/* base/ban_list.h -- addresses and networks that are not served, as an operator or fail2ban writes
 * them: one a line.
 *
 *   192.0.2.7                               for ever
 *   2001:db8:1::/48  1796000000             until this time, in seconds of 1970
 *   198.51.100.0/24  2026-11-30T12:00:00Z   until this time; +01:00 in place of Z, or a date alone
 *   # a comment; it may follow an entry
 *
 * Bounds   BAN_LIST_MAX entries; of a network that is named twice the longer time counts.
 * Thread   any; a list does not change.  A look-up is a binary search for each length of a network
 *          that occurs.
 */
#ifndef BASE_BAN_LIST_H
#define BASE_BAN_LIST_H

#include "base/ip.h"

#define BAN_LIST_MAX 100000u

struct ban_list;

/* A line that is left out; why says what was expected. */
typedef void ban_list_fault(void *arg, unsigned line, struct text text, const char *why);

/* Entries whose time is over are left out.  NULL: no memory. */
struct ban_list *ban_list_read(struct text file, uint64_t now_s, ban_list_fault *, void *arg);
void ban_list_free(struct ban_list *); /* NULL is allowed */
bool ban_list_has(const struct ban_list *, const struct ip *, uint64_t now_s);
size_t ban_list_size(const struct ban_list *);

#endif
