/* server/status/html.h -- between html.c and the look of its page. */
#ifndef SERVER_STATUS_HTML_H
#define SERVER_STATUS_HTML_H

extern const char status_css[], status_js[];

#endif
