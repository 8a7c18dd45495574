/* wire/http1/media_type.c -- see media_type.h */
#include "wire/http1/media_type.h"

static char *
put(char *p, struct text t)
{
	if (t.n != 0)
		memcpy(p, t.p, t.n);
	return (p + t.n);
}

size_t
media_type_charset(char *dst, struct text type, struct text charset)
{
	struct text rest = type, part, name;
	char *p = dst;

	if (!text_istarts(type, TEXT("text/")))
		return ((size_t)(put(p, type) - dst));
	while (text_next(&rest, ';', &part)) {
		name = text_trim(part);
		if (name.n == 0 || text_istarts(name, TEXT("charset=")))
			continue;
		if (p != dst)
			*p++ = ';';
		p = put(p, part);
	}
	p = put(p, TEXT("; charset="));
	return ((size_t)(put(p, charset) - dst));
}
