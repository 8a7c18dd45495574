/* io/http2/windows.c -- windows that a client opens byte by byte: it has to take its replies at
 * some rate in the long run, as by HTTP/1.
 */
#include "io/http2/impl.h"

#include "base/rate.h"

/* n bytes go out now, and leave this much of the window. */
static bool
is_behind(const struct http2 *h, struct window_debt *w, int32_t left, size_t n)
{
	uint64_t now = io_now(h->io);

	if (h->conf.send_rate == 0)
		return (false);
	debt_note(&w->debt_ns, w->shut_ns != 0 ? now - w->shut_ns : 0, (int64_t)n,
	    h->conf.send_rate);
	w->shut_ns = left <= 0 ? now : 0;
	return (w->debt_ns >= h->conf.send_ms * NS_PER_MS);
}

/* Each byte begins the time of the next one again, so their rate counts, too. */
void
http2_windows_judge(struct http2_stream *st, size_t n)
{
	struct http2 *h = st->h2;
	nghttp2_session *ng = h->ng;
	int32_t all = nghttp2_session_get_remote_window_size(ng);
	int32_t own = nghttp2_session_get_stream_remote_window_size(ng, st->id);

	h->late |= is_behind(h, &h->window, all - (int32_t)n, n);
	if (is_behind(h, &st->window, own - (int32_t)n, n) && st->out != OUT_DONE) {
		http2_stream_reset(st, NGHTTP2_CANCEL);
		http2_stream_broken(st);
	}
}
