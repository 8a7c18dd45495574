/* server/reply/page.c -- one layout for all pages, and a sentence for each status. */
#include "wire/http1/http1.h"
#include "server/reply/page.h"

/* The font of the system and the reader's choice of light or dark: readable everywhere, without
 * further requests. */
static const char css[] =
#include "server/reply/page.css.inc"
    ;

static const char sentences[] =
#include "server/reply/errors.txt.inc"
    ;

/* A line is a status, or a class of them, and its sentence with the marks of HTML. */
static struct text
sentence_of(int status)
{
	struct text rest = text_of(sentences), line, word;
	uint64_t n;

	while (text_next(&rest, '\n', &line) && text_next(&line, ' ', &word))
		if (text_u64(word, &n) == 0 &&
		    (n == (uint64_t)status || n == (status >= 500 ? 5 : 4)))
			return (line);
	return (TEXT_NONE);
}

static void
page_top(struct buf *out, int status)
{
	const char *reason = http1_reason(status);

	buf_printf(out,
	    "<!doctype html><html lang=en><meta charset=utf-8>\n<title>%s</title>\n"
	    "<meta name=viewport content=\"width=device-width\">\n<style>",
	    reason);
	buf_str(out, css);
	buf_printf(out, "</style>\n<h1><b>%d</b> %s</h1>\n", status, reason);
}

void
page_error(struct buf *out, int status)
{
	page_top(out, status);
	buf_str(out, "<p>");
	buf_text(out, sentence_of(status));
	buf_str(out, "</p>\n");
}

void
page_redirect(struct buf *out, int status, struct text location)
{
	page_top(out, status);
	buf_str(out, "<p>What you look for is at <a href=\"");
	buf_html(out, location);
	buf_str(out, "\">");
	buf_html(out, location);
	buf_str(out, "</a>. Follow the link if your browser did not.</p>\n");
}
