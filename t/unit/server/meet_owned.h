/* t/unit/server/meet_owned.h -- one address holds all sockets of an application, and another one
 * asks.
 *
 *   address 1   eight requests that take long: slow pages, or uploads that stop
 *   address 2   one request: it has its answer before proxy-core.wait-timeout
 */
#ifndef MEET_OWNED_H
#define MEET_OWNED_H

#define HOLDERS  8u
#define ANSWER_S 15u /* less than WAIT_S */

static void
one_ask(struct visitor *v, bool upload)
{
	struct ask *a = &v->ask[v->nasks++];

	*a = (struct ask){ .id = ++now.ids, .of = v, .at = AT_APP, .post = upload };
	now.by_id[a->id] = a;
	a->length = upload ? 1000 : 0;
	g_string_append_printf(v->to_say, "%s /up/1 HTTP/1.1\r\n" HOST "X-Id: id=%u;\r\n",
	    upload ? "POST" : "GET", a->id);
	if (upload)
		g_string_append(v->to_say, "Content-Length: 1000\r\n");
	g_string_append(v->to_say, "\r\n");
	a->body = v->to_say->len;
	add_body(v->to_say, a->id, a->length);
	a->last = v->to_say->len;
	a->url = "/up/1";
}

static void
holder_comes(void)
{
	struct visitor *v = visitor_new();
	bool upload = now.streams && one_in(2);

	one_ask(v, upload);
	if (upload)
		v->stops_at = v->to_say->len - 1 - below(900);
	v->ask[0].excuses = X_STOPPED | X_TIME;
	v->holds = true;
	visitor_connects(v, 0);
}

static void
owned_seed(unsigned seed)
{
	struct visitor *other;
	unsigned i;

	begin(seed);
	now.text = g_string_new(NULL);
	now.protocol = protocols[below(5)];
	now.streams = one_in(2);
	now.pool = 2 + below(4);
	conf("server.max-read-idle = %u\nproxy-core.read-timeout = 60\n"
	     "proxy-core.wait-timeout = %u\nserver.stream-request-body = %u\n",
	    3 * WAIT_S, WAIT_S, now.streams);
	conf_app("up");
	up(now.text->str);
	for (i = 0; i < HOLDERS; i++)
		holder_comes();
	calm();
	other = visitor_new();
	one_ask(other, false);
	visitor_connects(other, 1);
	for (i = 0; i < 4 * ANSWER_S && other->next == 0; i++) {
		calm();
		passes(250);
	}
	law(other->next == 1, "another address waits for %u s", ANSWER_S);
	now.faults = true; /* the holders end by a deadline */
	all_end();
	down();
	g_string_free(now.text, TRUE);
}

#endif
