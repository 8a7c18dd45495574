/* t/unit/server/meet_pairs.h -- which features met at one request. */
#ifndef MEET_PAIRS_H
#define MEET_PAIRS_H

#include "t/unit/server/meet.h"

#define NO_BODY  1
#define HAS_BODY 2
#define BY_APP   4

#define F(name, group, needs) { #name, G_##group, needs },
static const struct {
	const char *name;
	enum group group;
	unsigned needs;
} features[] = { FEATURES(F) };
#undef F

static unsigned met[NFEATURES][NFEATURES];

static uint64_t
of_what(const struct ask *a)
{
	static const uint64_t languages_[] = { BIT(fastcgi), BIT(scgi), BIT(http), BIT(ajp13),
		BIT(uwsgi) };
	static const char *const names[] = { "fastcgi", "scgi", "http", "ajp13", "uwsgi" };
	unsigned i;

	if (a->at == AT_CGI)
		return (BIT(cgi));
	if (a->at == AT_PAGE)
		return (BIT(page));
	if (a->at != AT_APP)
		return (a->at == AT_REFUSED || a->at == AT_MOVED ? BIT(refused) : BIT(file));
	for (i = 0; i < 4 && strcmp(now.protocol, names[i]) != 0; i++)
		;
	return (languages_[i]);
}

/* The outcome of its last application. */
static uint64_t
of_visit(const struct ask *a)
{
	const struct visit *v;
	unsigned i = a->nvisits;

	while (i > 0 && a->visit[i - 1].authorizer)
		i--;
	if (i == 0)
		return (0);
	v = &a->visit[i - 1];
	switch (v->plan) {
	case PLAN_FILE: return (v->fails == 0 ? BIT(sendfile) : BIT(sendfile_bad));
	case PLAN_PIECES: return (v->fails == 0 ? BIT(sendfile2) : BIT(sendfile2_bad));
	case PLAN_REDIRECT: return (v->fails == 0 ? BIT(redirect) : BIT(redirect_bad));
	case PLAN_FAILS:
	case PLAN_BROKEN: return (BIT(broken));
	case PLAN_SILENT: return (BIT(never));
	default: return (BIT(plain));
	}
}

static uint64_t
of_client(const struct ask *a)
{
	uint64_t f = a->of->sends == SENDS_ALL     ? BIT(one_segment)
		     : a->of->sends == SENDS_SPLIT ? BIT(split)
						   : BIT(alone);

	if ((a->met & (BIT(half_closes) | BIT(leaves))) == 0)
		f |= a->of->slow ? BIT(slow) : BIT(stays);
	f |= a->head ? BIT(head) : a->put ? BIT(put) : a->post ? BIT(post) : BIT(get);
	f |= !a->post       ? BIT(no_body)
	     : a->malformed ? BIT(malformed)
	     : a->chunked   ? BIT(chunked)
			    : BIT(length);
	if (a->n != 0 && a->of->sends != SENDS_ALONE) {
		f |= (a[-1].met & BIT(cold)) != 0 ? BIT(behind_cold) : 0;
		f |= a[-1].at >= AT_APP ? BIT(behind_app) : 0;
	}
	return (f | (a->expect ? BIT(expect) : 0) | (a->length > 65536 ? BIT(long_body) : 0));
}

static const struct on_disk *
looked_up(const struct ask *a)
{
	const struct visit *v = a->nvisits != 0 ? &a->visit[a->nvisits - 1] : NULL;

	if (a->at == AT_FILE && v == NULL)
		return (on_disk(a->url + 1));
	if (v == NULL || (v->plan != PLAN_FILE && v->plan != PLAN_REDIRECT))
		return (NULL);
	return (on_disk(v->path + 1));
}

static uint64_t
of_disk(const struct ask *a)
{
	const struct on_disk *f = looked_up(a);
	unsigned when = f != NULL ? now.opened[f - disk_files] : 0;

	return (when == 0 ? 0 : when > a->began ? BIT(cold) : BIT(hot));
}

static void
meet(struct ask *a)
{
	unsigned i, k;

	a->met |= of_what(a) | of_visit(a) | of_client(a) |
		  (now.streams ? BIT(streamed) : BIT(spooled)) |
		  (now.handler == NO_HANDLER   ? BIT(no_handler)
		      : now.handler == FOR_ALL ? BIT(error_handler)
					       : BIT(error_404)) |
		  (now.authorizer ? BIT(authorizer) : 0) | (now.modules ? BIT(modules) : 0);
	if (a->nvisits != 0 && (a->met & (BIT(early) | BIT(late) | BIT(never))) == 0)
		a->met |= BIT(at_end);
	a->met |= of_disk(a);
	for (i = 0; i < NFEATURES; i++)
		for (k = 0; k < i; k++)
			met[i][k] += (a->met >> i & 1) != 0 && (a->met >> k & 1) != 0;
}

/* ---------------------------------------------------------------- the table */

#define AN_APP   (BIT(fastcgi) | BIT(scgi) | BIT(http) | BIT(ajp13) | BIT(uwsgi) | BIT(cgi))
#define FOR_APPS (~0ull << f_plain & ~(~0ull << f_one_segment))
#define FOR_FILES                                                                                  \
	(BIT(sendfile) | BIT(sendfile_bad) | BIT(sendfile2) | BIT(sendfile2_bad) | BIT(redirect) | \
	    BIT(redirect_bad))
#define LOOKS (BIT(cold) | BIT(hot))

/* Pairs that cannot meet, besides features of one group. */
static const struct {
	uint64_t these, those;
} apart[] = {
	{ BIT(page) | BIT(refused), LOOKS },
	{ BIT(page), FOR_APPS },
	{ LOOKS, BIT(plain) | BIT(sendfile2) | BIT(sendfile2_bad) | BIT(broken) | BIT(never) },
	{ BIT(alone), BIT(behind_cold) | BIT(behind_app) },
	{ BIT(never), BIT(plain) | BIT(broken) | FOR_FILES },
	{ BIT(cold), BIT(hot) },
	{ BIT(early), BIT(file) | BIT(refused) },
	{ BIT(went_on), BIT(page) },
};

static bool
can_meet(unsigned i, unsigned k)
{
	unsigned n;

	if (features[i].group == features[k].group && features[i].group != G_ANY)
		return (false);
	if (((features[i].needs | features[k].needs) & (NO_BODY | HAS_BODY)) ==
	    (NO_BODY | HAS_BODY))
		return (false);
	for (n = 0; n < G_N_ELEMENTS(apart); n++)
		if (((apart[n].these >> i & 1) != 0 && (apart[n].those >> k & 1) != 0) ||
		    ((apart[n].these >> k & 1) != 0 && (apart[n].those >> i & 1) != 0))
			return (false);
	return (true);
}

static void
pairs_show(bool all)
{
	unsigned i, k;

	for (i = 0; i < NFEATURES; i++)
		for (k = 0; k < i; k++)
			if (can_meet(i, k) && (all || met[i][k] == 0))
				printf("# %-13s %-13s %u\n", features[i].name, features[k].name,
				    met[i][k]);
}

/* A pair that does not meet is not tested. */
static unsigned
pairs_missing(void)
{
	unsigned i, k, n = 0;

	for (i = 0; i < NFEATURES; i++)
		for (k = 0; k < i; k++)
			n += can_meet(i, k) && met[i][k] == 0;
	return (n);
}

#endif
