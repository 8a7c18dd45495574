/* accel-load/message.c -- messages on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include "accel-load/load.h"

void
load_message(const char *format, ...)
{
	va_list args;

	fputs("accel-load: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}
