/* server/reply/page.c -- one layout for all pages, and a sentence for each status. */
#include "base/must.h"
#include "wire/http1/http1.h"
#include "server/reply/page.h"

/* The font of the system and the reader's choice of light or dark: readable everywhere, without
 * further requests. */
static const char layout[] =
    "<meta name=viewport content=\"width=device-width\">\n"
    "<style>:root{color-scheme:light dark}"
    "body{font:1.1em/1.5 system-ui,sans-serif;max-width:34em;margin:15vh auto;padding:0 1em}"
    "h1{font-size:1.5em;margin:0}h1 b{opacity:.5;font-weight:400}</style>\n";

static const struct {
	int status;
	const char *sentence;
} sentences[] = {
	{ 400, "Your browser sent a request that this server cannot read. Reload the page; if a "
	       "program sent it, correct it." },
	{ 401, "This page needs a login. Sign in and try again." },
	{ 403, "You may not see this. If you should, ask the owner of this site to allow it." },
	{ 404, "There is nothing at this address. Check its spelling, or start from the <a "
	       "href=\"/\">front page</a>." },
	{ 405, "This address cannot be used in that way. Open it with a plain link instead." },
	{ 408, "The request took too long to arrive. Reload the page." },
	{ 411, "The request did not say how long it is. Send it with a Content-Length." },
	{ 412, "The file has changed since you last saw it. Reload it before you go on." },
	{ 413, "What you sent is larger than this server takes. Send something smaller." },
	{ 414, "The address is too long. Shorten it." },
	{ 415, "This server cannot read that kind of data. Send it in another format." },
	{ 416, "The file does not have the part that was asked for. Start the download again "
	       "from its beginning." },
	{ 417, "The server cannot do what the request expects of it. Send it without the Expect "
	       "header." },
	{ 429, "Too many requests came from you in a short time. Wait a little, then reload the "
	       "page." },
	{ 431, "The headers of the request are too long. Delete the cookies of this site and "
	       "try again." },
	{ 500, "Something went wrong in the server. Try again later; if it stays like this, "
	       "tell the owner of this site." },
	{ 501, "The server does not know how to do that. Send the request in another way." },
	{ 502, "The application behind this server gave an invalid answer. Try "
	       "again in a moment." },
	{ 503, "The server is too busy right now. Wait a few seconds, then reload the page." },
	{ 504,
	    "The application behind this server took too long to answer. Try again in a moment." },
	{ 505, "The server does not speak that version of HTTP. Use HTTP/1.1." },
};

static const char *
sentence_of(int status)
{
	size_t i;

	for (i = 0; i < NELEM(sentences); i++)
		if (sentences[i].status == status)
			return (sentences[i].sentence);
	return (status >= 500 ? "The server could not answer. Try again later."
			      : "The server did not accept the request. Check it and try again.");
}

static void
page_top(struct buf *out, int status)
{
	const char *reason = http1_reason(status);

	buf_printf(out, "<!doctype html><html lang=en><meta charset=utf-8>\n<title>%s</title>\n",
	    reason);
	buf_str(out, layout);
	buf_printf(out, "<h1><b>%d</b> %s</h1>\n", status, reason);
}

void
page_error(struct buf *out, int status)
{
	page_top(out, status);
	buf_printf(out, "<p>%s</p>\n", sentence_of(status));
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
