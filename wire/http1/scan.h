/* wire/http1/scan.h -- skips a run of bytes of one class; shared by the files of wire/. */
#ifndef WIRE_HTTP1_SCAN_H
#define WIRE_HTTP1_SCAN_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include "wire/http1/class.h"

/* First byte in [p, end) that is not of the class, or end. */
static inline const char *
skip(const char *p, const char *end, unsigned what)
{
	while (p < end && is(*p, what))
		p++;
	return (p);
}

/* The two long runs of a head, sixteen bytes per step.  Never reads past end. */
#ifdef __SSE2__
static inline const char *
skip_target(const char *p, const char *end)
{
	__m128i v, bad;
	unsigned hit;

	for (; end - p >= 16; p += 16) {
		v = _mm_loadu_si128((const __m128i *)p);
		/* the comparison is signed: bytes from 0x80 up are negative, so below '!' too */
		bad = _mm_cmplt_epi8(v, _mm_set1_epi8('!'));
		bad = _mm_or_si128(bad, _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f)));
		bad = _mm_or_si128(bad, _mm_cmpeq_epi8(v, _mm_set1_epi8('#')));
		hit = (unsigned)_mm_movemask_epi8(bad);
		if (hit != 0)
			return (p + __builtin_ctz(hit));
	}
	return (skip(p, end, C_TARGET));
}

static inline const char *
skip_value(const char *p, const char *end)
{
	__m128i v, bad;
	unsigned hit;

	for (; end - p >= 16; p += 16) {
		v = _mm_loadu_si128((const __m128i *)p);
		/* unsigned v <= 0x1f */
		bad = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
		bad = _mm_andnot_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\t')), bad);
		bad = _mm_or_si128(bad, _mm_cmpeq_epi8(v, _mm_set1_epi8(0x7f)));
		hit = (unsigned)_mm_movemask_epi8(bad);
		if (hit != 0)
			return (p + __builtin_ctz(hit));
	}
	return (skip(p, end, C_VALUE));
}
#else
static inline const char *
skip_target(const char *p, const char *end)
{
	return (skip(p, end, C_TARGET));
}

static inline const char *
skip_value(const char *p, const char *end)
{
	return (skip(p, end, C_VALUE));
}
#endif

#endif
