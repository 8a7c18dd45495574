/* t/fuzz/fuzz_load_urls.c -- any bytes as a list of URLs: what is read can be sent in a request. */
#include <stdio.h>
#include "accel-load/answer.h"
#include "accel-load/urls.h"
#include "base/must.h"
#include "t/fuzz/fuzz.h"
#include "wire/http1/http1.h"

const struct fuzz_seed fuzz_seeds[] = {
	SEED("/a\n/b?c=d\nhttp://h/\n\n# no\nhttp://[::1]:8080/x#y\r\n"),
	SEED("http://www.example.org:80\n/%41%zz 404\n"),
	SEED("http://h?q\n"),
	SEED("https://h/\n"),
	SEED("http://a@b/\nhttp://h:0/\nhttp://h:99999/\n"),
	SEED("/a b\n\x80\n\0/\n"),
	{ NULL, 0 },
};

/* Does nothing: each line that is not a URL would print a line on standard error. */
void
load_message(const char *format, ...)
{
}

/* Each URL makes one request that a server reads as this path. */
static void
check(const struct load_conf *conf, const struct url *u)
{
	const struct request r = { .length = 0 };
	struct http_request back;
	struct buf out;
	const char *why;
	size_t used;
	int status;

	must(u->path_len > 0 && u->path_len <= URL_MAX && u->path[0] == '/');
	must(u->status <= 999 && u->target->len > 0);
	buf_init(&out, 0);
	must(load_http.request(conf, u, &r, &out));
	if (http1_head(buf_as_text(&out), 64 << 10, &back, &used, &status, &why) == PARSE_DONE) {
		must(used == out.n && back.keep_alive);
		must(text_eq(back.target, (struct text){ u->path, u->path_len }));
	}
	buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	/* A socket, so that no name is looked up. */
	const struct load_conf conf = { .unix_path = "/run/s", .list = "list", .pipeline = 1 };
	struct urls list = { .n = 0 };
	FILE *f;
	int code;

	if (n == 0)
		return (0);
	f = fmemopen((void *)p, n, "r");
	must(f != NULL);
	code = urls_read(&list, &conf, f, NULL);
	must(code == 0 || code == 65); /* EX_DATAERR */
	for (size_t i = 0; i < list.n; i++)
		check(&conf, &list.url[i]);
	urls_close(&list);
	fclose(f);
	return (0);
}
