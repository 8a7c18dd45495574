/* t/unit/server/meet_conf.h -- a random configuration: modules, handlers, error handlers,
 * authorizers.
 *
 *   /up*   an application       /run.cgi  a program     /page  the status page
 *   /ok*   the same, behind an authorizer if there is one        others: files
 */
#ifndef MEET_CONF_H
#define MEET_CONF_H

#include "t/unit/server/meet.h"

static const char *const protocols[] = { "fastcgi", "scgi", "http", "ajp13", "uwsgi" };

static void G_GNUC_PRINTF(1, 2) conf(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	g_string_append_vprintf(now.text, fmt, ap);
	va_end(ap);
}

static void
conf_app(const char *urls)
{
	conf("$HTTP[\"url\"] =~ \"^/%s\" {\nproxy-core.protocol = \"%s\"\n"
	     "proxy-core.backends = ( %s )\nproxy-core.max-pool-size = %u\n"
	     "proxy-core.max-keep-alive-requests = %u\nproxy-core.allow-x-sendfile = \"enable\"\n"
	     "proxy-core.disable-time = 0\n",
	    urls, now.protocol,
	    now.next ? "\"10.0.0.1:80\", \"10.0.0.3:80\", \"10.0.0.4:80\"" : "\"10.0.0.1:80\"",
	    now.pool, one_in(3) ? 0 : 100);
	if (now.next_5xx)
		conf("proxy-core.next-upstream = ( \"error\", \"timeout\", \"invalid-header\", "
		     "\"http-500\", \"http-502\", \"http-503\", \"http-504\" )\n");
	if (now.authorizer && strcmp(urls, "ok") == 0)
		conf("proxy-core.authorizer = ( \"10.0.0.2:80\" )\n");
	conf("}\n");
}

static void
conf_errors(void)
{
	static const char *const to[] = { "/b", "/up/error", "/up/error", "/none", "/run.cgi" };

	now.handler = below(3);
	now.error_to = to[below(now.programs ? 5 : 4)];
	if (now.handler != NO_HANDLER)
		conf("server.error-handler%s = \"%s\"\n", now.handler == FOR_404 ? "-404" : "",
		    now.error_to);
}

static void
conf_modules(void)
{
	now.modules = one_in(2);
	conf("url.access-deny = ( \"~\" )\nurl.redirect = ( \"^/moved\" => \"/a\" )\n"
	     "url.rewrite-once = ( \"^/re/(.*)\" => \"/$1\" )\n");
	if (!now.modules)
		return;
	conf("setenv.add-response-header = ( \"X-Set\" => \"1\" )\n"
	     "expire.url = ( \"/\" => \"access 1 hours\" )\n");
}

static void
conf_make(void)
{
	now.text = g_string_new(NULL);
	now.protocol = protocols[below(5)];
	now.streams = one_in(2);
	now.authorizer = one_in(2);
	now.programs = one_in(3);
	now.pool = 1 + below(3);
	now.next = one_in(2);
	now.next_5xx = now.next && one_in(2);
	now.tells_id = one_in(2);
	if (now.tells_id)
		conf("server.request-id = ( \"application\", \"client\" )\n");
	conf("server.max-read-idle = %u\nserver.max-write-idle = %u\n"
	     "server.stream-request-body = %u\nproxy-core.read-timeout = %u\n"
	     "proxy-core.wait-timeout = %u\nproxy-core.connect-timeout = %u\n"
	     "proxy-core.total-timeout = %u\ncgi.wait-timeout = %u\ncgi.max-run-time = %u\n",
	    WAIT_S, WAIT_S, now.streams, WAIT_S, WAIT_S, WAIT_S, 2 * WAIT_S, WAIT_S, 2 * WAIT_S);
	conf("status.status-url = \"/page\"\n");
	if (now.programs)
		conf("cgi.assign = ( \".cgi\" => \"\" )\ncgi.x-sendfile = \"enable\"\n");
	conf_errors();
	conf_modules();
	conf_app("up");
	conf_app("ok");
}

#endif
