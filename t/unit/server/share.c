/* t/unit/server/share.c -- how much of a shared resource one client may hold. */
#include "server/process/share.h"
#include "t/unit/test.h"

static struct share s;

static uint64_t
take_all(uint32_t client, uint64_t limit)
{
	uint64_t n = 0;

	while (share_take(&s, client, 1, limit))
		n++;
	return (n);
}

TEST("/share/halves")
{
	g_assert_cmpuint(take_all(1, 1000), ==, 500);
	g_assert_cmpuint(take_all(2, 1000), ==, 250); /* half of what the first one left */
	g_assert_cmpuint(take_all(3, 1000), ==, 125);
	g_assert_cmpuint(take_all(1, 1000), ==, 0);
	share_give(&s, 1, 500);
	g_assert_cmpuint(s.used, ==, 375);
	g_assert_cmpuint(take_all(2, 1000), ==, 187);
	share_give(&s, 2, 437);
	share_give(&s, 3, 125);
	g_assert_cmpuint(s.used, ==, 0);
}

TEST("/share/limits")
{
	g_assert_false(share_take(&s, 1, 1, 0));
	g_assert_true(share_take(&s, 1, 0, 0));
	g_assert_false(share_take(&s, 1, UINT64_MAX, 1000));
	g_assert_false(share_take(&s, 1, 501, 1000));
	g_assert_true(share_take(&s, 1, 500, 1000));
	g_assert_false(share_take(&s, 1, 1, 100)); /* the limit became smaller */
	share_give(&s, 1, 500);
	g_assert_cmpuint(s.used, ==, 0);
}
