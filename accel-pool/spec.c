#include "accel-pool/spec.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/random.h"

#define FRACTION 32 /* bits of a logarithm after the point */
#define SAMPLES  1000000u

/* ---------------------------------------------------------------- text */

static const char wrong[] = "DIRSxFILESxSIZE, as 1000x100x100k or 10x10x4k-1m";

static bool
parse_size(struct text t, struct spec *s)
{
	struct text rest = t, first, second;

	if (!text_next(&rest, '-', &first) || !text_size(first, 0, SPEC_SIZE_MAX, &s->min))
		return (false);
	s->max = s->min;
	if (rest.p == NULL)
		return (true);
	second = rest;
	return (s->min > 0 && text_size(second, s->min, SPEC_SIZE_MAX, &s->max));
}

static bool
parse_count(struct text *rest, uint32_t max, uint32_t *out)
{
	struct text t;
	uint64_t n;

	if (!text_next(rest, 'x', &t) || text_u64(t, &n) != 0 || n == 0 || n > max)
		return (false);
	*out = (uint32_t)n;
	return (true);
}

const char *
spec_parse(struct text t, struct spec *spec)
{
	struct spec s;

	if (!parse_count(&t, SPEC_DIRS_MAX, &s.dirs) || !parse_count(&t, SPEC_FILES_MAX, &s.files))
		return (wrong);
	if (t.p == NULL || !parse_size(t, &s))
		return (wrong);
	if (s.max > 0 && spec_count(&s) > SPEC_TOTAL_MAX / s.max)
		return ("at most 4 PiB in all");
	*spec = s;
	return (NULL);
}

/* 102400 is "100k". */
static size_t
put_size(char *dst, uint64_t n)
{
	static const char units[] = "kmg";
	unsigned u = 0;
	size_t len;

	while (n > 0 && n % 1024 == 0 && u < sizeof(units) - 1) {
		n /= 1024;
		u++;
	}
	len = text_put_u64(dst, n);
	if (u > 0)
		dst[len++] = units[u - 1];
	return (len);
}

size_t
spec_put_dir(const struct spec *s, char dst[SPEC_TEXT_MAX])
{
	size_t n = put_size(dst, s->min);

	if (s->max != s->min) {
		dst[n++] = '-';
		n += put_size(dst + n, s->max);
	}
	dst[n] = '\0';
	return (n);
}

size_t
spec_put(const struct spec *s, char dst[SPEC_TEXT_MAX])
{
	char size[SPEC_TEXT_MAX];

	spec_put_dir(s, size);
	return ((size_t)snprintf(dst, SPEC_TEXT_MAX, "%" PRIu32 "x%" PRIu32 "x%.30s", s->dirs,
	    s->files, size));
}

size_t
spec_put_path(const struct spec *s, struct spec_place at, char dst[SPEC_TEXT_MAX])
{
	size_t n = spec_put_dir(s, dst);

	return (n + (size_t)snprintf(dst + n, SPEC_TEXT_MAX - n, "/%04" PRIu32 "/%04" PRIu32 ".bin",
			at.dir, at.file));
}

bool
spec_place_of(const struct spec *s, struct text path, struct spec_place *place)
{
	struct text rest = path, size, dir, file;
	char again[SPEC_TEXT_MAX];
	struct spec_place at;
	uint64_t d, f;
	size_t n;

	if (!text_next(&rest, '/', &size) || !text_next(&rest, '/', &dir))
		return (false);
	file = rest;
	if (text_u64(dir, &d) != 0 || d >= s->dirs || !text_ends(file, TEXT(".bin")))
		return (false);
	file.n -= 4;
	if (text_u64(file, &f) != 0 || f >= s->files)
		return (false);
	at = (struct spec_place){ (uint32_t)d, (uint32_t)f };
	n = spec_put_path(s, at, again); /* one spelling is right: not "007/42.bin" */
	if (!text_eq(path, (struct text){ again, n }))
		return (false);
	*place = at;
	return (true);
}

/* ---------------------------------------------------------------- sizes */

/* The logarithm to base 2, straight between powers: exp2_of() undoes it. */
static uint64_t
log2_of(uint64_t x)
{
	unsigned k = 63u - (unsigned)__builtin_clzll(x);
	uint64_t below = x - (UINT64_C(1) << k);

	below = k > FRACTION ? below >> (k - FRACTION) : below << (FRACTION - k);
	return (((uint64_t)k << FRACTION) + below);
}

static uint64_t
exp2_of(uint64_t y)
{
	unsigned k = (unsigned)(y >> FRACTION);
	uint64_t below = y & ((UINT64_C(1) << FRACTION) - 1);

	return ((UINT64_C(1) << k) +
		(k > FRACTION ? below << (k - FRACTION) : below >> (FRACTION - k)));
}

uint64_t
spec_size(const struct spec *s, struct spec_place at, uint64_t seed)
{
	uint64_t from, span, part, size;

	if (s->min == s->max)
		return (s->min);
	from = log2_of(s->min);
	span = log2_of(s->max) - from;
	part = random_mix(random_mix(seed) ^ ((uint64_t)at.dir << 32 | at.file)) >> 32;
	size = exp2_of(from + (uint64_t)(((unsigned __int128)span * part) >> 32));
	return (size < s->min ? s->min : size > s->max ? s->max : size);
}

uint64_t
spec_count(const struct spec *s)
{
	return ((uint64_t)s->dirs * s->files);
}

uint64_t
spec_bytes(const struct spec *s, uint64_t seed)
{
	const uint64_t n = spec_count(s), step = n / SAMPLES + 1;
	uint64_t sum = 0, seen = 0;

	if (s->min == s->max)
		return (n * s->min);
	for (uint64_t i = 0; i < n; i += step, seen++)
		sum += spec_size(s,
		    (struct spec_place){ (uint32_t)(i / s->files), (uint32_t)(i % s->files) },
		    seed);
	return ((uint64_t)((unsigned __int128)sum * n / seen));
}
