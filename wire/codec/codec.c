/* wire/codec/codec.c -- see codec.h */
#include <string.h>
#include "wire/codec/codec.h"

#define P(name) extern const struct proto proto_##name;
#include "wire/codec/codecs.def"
#undef P

const struct proto *const protos[] = {
#define P(name) &proto_##name,
#include "wire/codec/codecs.def"
#undef P
	NULL,
};

const struct proto *
proto_find(const char *name)
{
	size_t i;

	for (i = 0; protos[i] != NULL; i++)
		if (strcmp(protos[i]->name, name) == 0)
			return (protos[i]);
	return (NULL);
}
