/* server/module/rules.h -- numbers of the settings that are compiled once: RULES_NAME. */
#ifndef SERVER_MODULE_RULES_H
#define SERVER_MODULE_RULES_H

enum { /* settings that are compiled once */
#define R(name) RULES_##name,
#include "server/module/rules.def"
#undef R
	RULES
};

#endif
