#include "fcgi-stat-accel/dialect.h"

#include <stddef.h>
#include <string.h>

enum { PERCENT, RAW };
enum { NAME_ANY, NAME_UTF8 };
enum { STATUS_200, STATUS_307 };

const struct dialect dialects[] = {
#define D(name, header, encoding, names, status, doc) { name, header, encoding == RAW, names == NAME_UTF8, status == STATUS_307, doc },
#include "fcgi-stat-accel/dialects.def"
#undef D
	{ NULL },
};

const struct dialect *
dialect_of(const char *name)
{
	for (const struct dialect *d = dialects; d->name != NULL; d++)
		if (strcmp(d->name, name) == 0)
			return (d);
	return (NULL);
}
