#include "fcgi-stat-accel/path_info.h"

#include <errno.h>

/* -EXDEV: a directory above a root. */
static bool
is_dir(const struct warm_found *f)
{
	return (f->err == -EISDIR || f->err == -EXDEV || (f->err == 0 && f->index != NULL));
}

/* A slash near the middle, neither at `dir` nor at `behind`; 0: none. */
static size_t
middle_slash(const GString *name, size_t dir, size_t behind)
{
	size_t mid = dir + (behind - dir) / 2;

	for (size_t i = mid; i > dir; i--)
		if (name->str[i] == '/')
			return (i);
	for (size_t i = mid + 1; i < behind; i++)
		if (name->str[i] == '/')
			return (i);
	return (0);
}

bool
path_info_next(struct path_info *s, const GString *name, const struct warm_found *found)
{
	size_t n = s->at != 0 ? s->at : name->len;

	if (found->err == -ENOTDIR)
		s->behind = n;
	else if (s->behind != 0 && is_dir(found))
		s->dir = n;
	else
		return (false);
	s->at = middle_slash(name, s->dir, s->behind);
	return (s->at != 0);
}
