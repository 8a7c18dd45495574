/* server/status/running_page.c -- the running requests as HTML, JSON and text. */
#include <inttypes.h>

#include "base/clock.h"
#include "server/status/running.h"

static uint64_t
age_ms(const struct running *r, const struct running_row *row)
{
	return (clock_between(row->since_ns, r->now_ns) / NS_PER_MS);
}

static void
put_url(struct buf *out, const struct running_row *row, void (*put)(struct buf *, struct text))
{
	put(out, text_of(row->url));
	if (row->cut)
		buf_str(out, "...");
}

/* ---- JSON */

static void
json_text(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "\"%s\":", key);
	buf_json(out, text_of(value));
	buf_char(out, ',');
}

static void
json_row(struct buf *out, const struct running *r, const struct running_row *row)
{
	buf_char(out, '{');
	json_text(out, "id", row->id);
	json_text(out, "client", row->client);
	json_text(out, "method", row->method);
	json_text(out, "url", row->url);
	json_text(out, "state", row->state);
	json_text(out, "backend", row->backend);
	json_text(out, "device", row->device);
	buf_printf(out, "\"url_cut\":%s,\"age_ms\":%" PRIu64 ",\"sent_bytes\":%" PRIu64 "}",
	    row->cut ? "true" : "false", age_ms(r, row), row->sent);
}

void
running_json(struct buf *out, const struct running *r)
{
	const char *comma = "";
	size_t i;

	buf_printf(out, "\"running\":{\"requests\":%zu,\"more\":%zu,\"silent_workers\":[", r->all,
	    r->all - r->n);
	for (i = 0; i < 64; i++)
		if (r->silent_bits >> i & 1) {
			buf_printf(out, "%s%zu", comma, i);
			comma = ",";
		}
	buf_str(out, "],\n\"rows\":[");
	for (i = 0; i < r->n; i++) {
		buf_str(out, i != 0 ? ",\n" : "");
		json_row(out, r, &r->row[i]);
	}
	buf_str(out, "]},\n");
}

/* ---- text */

static void
text_cell(struct buf *out, const char *text)
{
	buf_log_quoted(out, text_of(text[0] != '\0' ? text : "-"));
	buf_char(out, '\t');
}

void
running_text(struct buf *out, const struct running *r)
{
	size_t i;

	buf_str(out, "age_ms\tsent_bytes\tclient\tid\tstate\tbackend\tdevice\tmethod\turl\n");
	for (i = 0; i < r->n; i++) {
		const struct running_row *row = &r->row[i];

		buf_printf(out, "%" PRIu64 "\t%" PRIu64 "\t%s\t%s\t%s\t", age_ms(r, row), row->sent,
		    row->client, row->id, row->state);
		text_cell(out, row->backend);
		text_cell(out, row->device);
		buf_log_quoted(out, text_of(row->method));
		buf_char(out, '\t');
		put_url(out, row, buf_log_quoted);
		buf_char(out, '\n');
	}
	buf_printf(out, "# %zu running, %zu more; %u of %u workers did not answer\n", r->all,
	    r->all - r->n, r->silent, r->workers);
}

/* ---- HTML */

static void
html_cell(struct buf *out, const char *text)
{
	buf_str(out, "<td>");
	buf_html(out, text_of(text));
	buf_str(out, "</td>");
}

static void
html_row(struct buf *out, const struct running *r, const struct running_row *row)
{
	buf_str(out, "<tr><td>");
	buf_html(out, text_of(row->method));
	buf_char(out, ' ');
	put_url(out, row, buf_html);
	buf_str(out, "</td>");
	html_cell(out, row->client);
	html_cell(out, row->id);
	html_cell(out, row->state);
	html_cell(out, row->backend);
	html_cell(out, row->device);
	buf_printf(out, "<td>%.3f s</td><td>%" PRIu64 "</td></tr>\n", (double)age_ms(r, row) / 1000,
	    row->sent);
}

static void
html_silent(struct buf *out, const struct running *r)
{
	unsigned i;

	if (r->silent == 0)
		return;
	buf_str(out, "<p class=\"bad\">These workers did not answer:");
	for (i = 0; i < 64; i++)
		if (r->silent_bits >> i & 1)
			buf_printf(out, " %u", i);
	buf_str(out, "</p>");
}

void
running_html(struct buf *out, const struct running *r)
{
	size_t i;

	buf_printf(out, "<section><h2>Running requests<small>%zu, oldest first", r->all);
	if (r->all > r->n)
		buf_printf(out, "; %zu more are not shown", r->all - r->n);
	buf_str(out, "; as of when the page was loaded</small></h2>");
	html_silent(out, r);
	buf_str(out, "\n<table id=\"running\"><thead><tr><th>request</th><th>client</th><th>id</th>"
		     "<th>state</th><th>backend</th><th>device</th><th>age</th><th>bytes "
		     "sent</th></tr></thead>\n"
		     "<tbody>\n");
	for (i = 0; i < r->n; i++)
		html_row(out, r, &r->row[i]);
	buf_str(out, "</tbody></table></section>\n");
}
