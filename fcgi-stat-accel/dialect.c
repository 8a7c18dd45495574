#include "fcgi-stat-accel/dialect.h"

#include <stddef.h>

enum { PERCENT, RAW };
enum { NAME_ANY, NAME_UTF8 };
enum { STATUS_200, STATUS_307 };

const struct dialect dialects[] = {
#define D(name, header, encoding, names, status, doc) \
	{ name, header, encoding == RAW, names == NAME_UTF8, status == STATUS_307, doc },
#include "fcgi-stat-accel/dialects.def"
#undef D
	{ NULL },
};
