/* io/counters.h -- what io/ counts; its files and those who show it see this. */
#ifndef IO_COUNTERS_H
#define IO_COUNTERS_H

#include <stddef.h>
#include "base/counter.h"

struct io_counters { /* of a loop: server/status/counters.def says what each is */
	uint64_t file_reads, file_inline, loop_waits, queue_displaced, noatime_refused;
	uint64_t tls_handshakes, tls_resumed, tls_client_waits;
	uint64_t http2_streams, http2_resets;
	uint64_t http2_flood_resets, http2_flood_streams, http2_flood_control, http2_flood_empty;
	uint64_t http2_flood_windows, http2_flood_priority, http2_flood_heads;
	uint64_t hotset_filled, hotset_evicted, hotset_sent, pages_gone, file_grew, rate_pauses;
	/* a pair for each backend of files */
	uint64_t writev_async, writev_sync, linux_sendfile_async, linux_sendfile_sync;
	uint64_t gthread_aio_async, gthread_aio_sync, gthread_sendfile_async, gthread_sendfile_sync;
	uint64_t posix_aio_async, posix_aio_sync, linux_aio_async, linux_aio_sync;
	uint64_t io_uring_async, io_uring_sync, adaptive_async, adaptive_sync;
};
/* .counts of a backend */
#define FILE_COUNTS(name)                                      \
	{                                                      \
		offsetof(struct io_counters, name##_async),    \
		    offsetof(struct io_counters, name##_sync), \
	}

struct io_pins_counters { /* of io/disk/pin.h: windows */
	uint64_t pinned, again, early, refused;
};

#endif
