/* t/fuzz/fuzz_load.c -- what other programs write for accel-load: lists of hashes. */
#include <glib.h>
#include <stdlib.h>
#include "accel-load/hash_list.h"
#include "base/must.h"
#include "t/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("900150983cd24fb0d6963f7d28e17f72  ./a/b\n\\900150983cd24fb0d6963f7d28e17f72 "
	     "*a\\\\b\\n\r\n"),
	{ NULL, 0 },
};

static void
check_hashes(struct text in)
{
	struct hash_list list;
	GHashTableIter iter;
	gpointer path, hash;
	const char *why;
	unsigned line;

	if (!hash_list_read(in, &list, &line, &why)) {
		must(why != NULL && line >= 1 && line <= in.n + 2);
		return;
	}
	g_hash_table_iter_init(&iter, list.hashes);
	while (g_hash_table_iter_next(&iter, &path, &hash)) {
		g_autofree char *url = g_strconcat("/x/", (char *)path, NULL);

		must(strspn(hash, "0123456789abcdef") == strlen(hash));
		must(strlen(hash) == 2 * (size_t)g_checksum_type_get_length(list.type));
		must(((char *)path)[0] == '\0' || hash_list_find(&list, url) != NULL);
	}
	hash_list_free(&list);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	check_hashes((struct text){ (const char *)p, n });
	return (0);
}
