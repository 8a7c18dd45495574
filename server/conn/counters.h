/* server/conn/counters.h -- what connections count; server/status/counters.def names them. */
#ifndef SERVER_CONN_COUNTERS_H
#define SERVER_CONN_COUNTERS_H

#include "base/counter.h"

struct conn_counters {
	uint64_t accepts, adopted, spread, accept_pauses;
	uint64_t room_idle, room_ended, room_silent, room_slow, room_busy, room_refused, room_heads;
	uint64_t address_full, banned, requests_banned, proxy_headers, proxy_headers_bad;
	uint64_t drain_cut, client_gone, client_ended, connection_bugs;
	uint64_t tls_13_full, tls_13_resumed, tls_12_full, tls_12_resumed;
	uint64_t tls_failed, tls_http, tls_not_tls, tls_nothing_common, tls_alert, tls_left;
	uint64_t http2_failed;
	uint64_t tls_late, tls_refused, tls_other;
	uint64_t requests, requests_overdue, bad_requests, bytes_sent;
};

#endif
