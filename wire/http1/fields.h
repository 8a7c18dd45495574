/* wire/http1/fields.h -- header fields by name: equal names, and the names in a Connection field.
 *
 * Pure.  The work is linear in the fields, in the length of their names and of the Connection
 * values: at most FIELDS_MAX names are in four times as many slots, with a seed that outsiders do
 * not know.
 */
#ifndef WIRE_FIELDS_H
#define WIRE_FIELDS_H

#include "wire/codec/message.h"

#define FIELDS_MAX 256u

struct fields {
	const struct proxy_field *v;
	size_t n, mask; /* slots in use - 1 */
	bool hops;      /* Connection lists a field */
	/* number of the first field of a name, from 1; 0: free */
	uint16_t slot[4 * FIELDS_MAX];
	uint16_t next[FIELDS_MAX]; /* number of the next field of the same name; 0: none */
	bool repeats[FIELDS_MAX];  /* an earlier field has the same name */
	bool named[FIELDS_MAX];    /* first field of a name that Connection lists */
};

/* n <= FIELDS_MAX. */
void fields_index(struct fields *, const struct proxy_field *v, size_t n);
/* the first one of that name; n: none */
size_t fields_find(const struct fields *, struct text name);
/* the next one of the same name; n: none */
size_t fields_next(const struct fields *, size_t i);
/* True for a hop-by-hop field: by its name, or because Connection lists it.  Connection does not
 * remove Host and fields that are set. */
bool fields_is_hop(const struct fields *, size_t i);
bool fields_is_hop_name(struct text name);
/* True for a field that may follow the body of a reply. */
bool fields_may_trail(struct text name);

#endif
