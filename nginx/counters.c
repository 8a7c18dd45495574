/* nginx/counters.c -- what all workers have counted, in shared memory that a reload keeps.
 *
 *     row 0:  pid 4711, its state now, its counts       each worker writes to a row of its own, so
 *     row 1:  pid 4712, ...                             counting needs no lock and no atomic
 *     row 2:  0, no state, counts of one that ended     operation; a page adds them up
 *
 * A new worker takes the row of one that has ended, or was killed, and counts on. */
#include "nginx/stat_accel.h"

#include <signal.h>

#define ROWS NGX_MAX_PROCESSES /* workers, with those of before a reload that end later */

struct accel_table {
	ngx_uint_t generation;
	struct accel_row rows[ROWS];
};

static struct accel_row nobody; /* counts of processes without a row */
struct accel_row *accel_row = &nobody;

/* ---------------------------------------------------------------- the zone */

static ngx_int_t
zone_init(ngx_shm_zone_t *zone, void *old)
{
	struct accel_main_conf *mcf = zone->data, *before = old;
	ngx_slab_pool_t *pool = (ngx_slab_pool_t *)zone->shm.addr;

	mcf->table = before != NULL ? before->table : ngx_slab_calloc(pool, sizeof(*mcf->table));
	if (mcf->table == NULL)
		return (NGX_ERROR);
	mcf->generation = ++mcf->table->generation;
	return (NGX_OK);
}

ngx_int_t
accel_counters_add(ngx_conf_t *cf)
{
	static ngx_str_t name = ngx_string("stat_accel_counters");
	size_t size = sizeof(struct accel_table) + 16 * ngx_pagesize; /* the slab has its own */
	ngx_shm_zone_t *zone = ngx_shared_memory_add(cf, &name, size, &ngx_http_stat_accel_module);

	if (zone == NULL)
		return (NGX_ERROR);
	zone->init = zone_init;
	zone->data = ngx_http_conf_get_module_main_conf(cf, ngx_http_stat_accel_module);
	return (NGX_OK);
}

/* ---------------------------------------------------------------- the row of a worker */

static bool
lives(ngx_pid_t pid)
{
	return (pid != 0 && (kill(pid, 0) == 0 || errno != ESRCH));
}

void
accel_counters_init(const struct accel_main_conf *mcf)
{
	struct accel_row *row = mcf->table->rows, *end = row + ROWS;
	ngx_atomic_uint_t was;

	for (; row < end; row++) {
		was = row->pid;
		if (!lives((ngx_pid_t)was) &&
		    ngx_atomic_cmp_set(&row->pid, was, (ngx_atomic_uint_t)ngx_pid))
			break;
	}
	if (row == end)
		return;
	row->out = 0;
	row->down = 0;
	row->generation = mcf->generation;
	accel_row = row;
}

/* Nobody waits for what is still asked. */
void
accel_counters_end(void)
{
	accel_row->counts[ACCEL_COUNT_called_back] += accel_row->out;
	accel_row->pid = 0;
	accel_row = &nobody;
}

/* ---------------------------------------------------------------- counting */

void
accel_count_peer(const struct accel_peer *p, bool down)
{
	uint64_t bit = p->number < ACCEL_PEERS_SHOWN ? (uint64_t)1 << p->number : 0;

	if (down && !p->down)
		accel_count(ACCEL_COUNT_peer_down);
	accel_row->down = down ? accel_row->down | bit : accel_row->down & ~bit;
}

void
accel_count_request(const struct accel_ctx *ctx)
{
	static const enum accel_counter counters[] = {
		[ACCEL_REMEMBERED] = ACCEL_COUNT_remembered,
		[ACCEL_HOT] = ACCEL_COUNT_hot,
		[ACCEL_WARMED] = ACCEL_COUNT_warmed,
		[ACCEL_WAS_LATE] = ACCEL_COUNT_late,
	};

	if (ctx->question != NULL)
		accel_count(ACCEL_COUNT_left);
	else if (ctx->failed && ctx->status != ACCEL_WAS_LATE)
		accel_count(ACCEL_COUNT_failed);
	else if (ctx->status >= ACCEL_REMEMBERED)
		accel_count(counters[ctx->status]);
}

/* ---------------------------------------------------------------- adding up */

void
accel_counters_sum(const struct accel_main_conf *mcf, struct accel_sums *sums)
{
	ngx_memzero(sums, sizeof(*sums));
	for (const struct accel_row *row = mcf->table->rows; row < mcf->table->rows + ROWS; row++) {
		for (ngx_uint_t i = 0; i < ACCEL_COUNTERS; i++)
			sums->counts[i] += row->counts[i];
		if (!lives((ngx_pid_t)row->pid))
			continue;
		sums->out += row->out;
		if (row->generation != mcf->generation)
			continue;
		sums->workers++;
		for (ngx_uint_t i = 0; i < ACCEL_PEERS_SHOWN; i++)
			sums->down[i] += row->down >> i & 1;
	}
}
