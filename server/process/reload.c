/* server/process/reload.c -- reads the configuration again while the server runs.
 *
 * The helper process reads it.  The main thread waits for it in the same poll(2) as for signals.  A
 * reload starts the next generation on the same listening sockets and drains the old one, so no
 * connection is refused or dropped.  Its idle connections move: server/conn/handover.h.
 */
#include <errno.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/start/notify.h"
#include "server/process/impl.h"
#include "server/config/record.h"

/* For status pages and accel-server ctl.  status: 0, or of sysexits. */
static void
note_outcome(struct process *ps, int status)
{
	struct counters_list *all = &ps->counters_list;
	bool in_use = status == 0;

	(void)log_overhear(NULL);
	ps->last.at = (time_t)(clock_wall_ns() / NS_PER_S);
	ps->last.status = status;
	process_control_done(ps, CONTROL_RELOAD, status, buf_as_text(&ps->last.said));
	shared_set(all->reload_refused, !in_use);
	if (!in_use)
		return;
	shared_set(all->loaded_wall_s, clock_wall_ns() / NS_PER_S);
	shared_set(all->reloads, all->reloads + 1);
}

static void
tell_refused(const char *what)
{
	log_event(LOG_ERROR, NULL, "reload.refused", LF_STR("what", what),
	    LF_STR("then", "the old configuration stays in use"));
}

/* Takes the sources. */
static void
reload_start_generation(struct process *ps, struct sources *sources)
{
	static const char see_before[] = "it cannot start; the lines before this one say why";
	struct generation *old = process_newest(ps);
	struct listeners now;
	struct buf err, warn;
	struct config *config;
	char why[1024];
	int status = EX_CONFIG;

	buf_init(&err, 0);
	buf_init(&warn, 0);
	(void)log_overhear(&ps->last.said);
	config = config_load(ps->opt->file, sources, &err, &warn);
	process_say(LOG_WARN, "config.warning", buf_as_text(&warn));
	if (config == NULL) {
		process_say(LOG_ERROR, "reload.refused", buf_as_text(&err));
	} else if (!process_sandbox_reaches(ps, config, why, sizeof(why))) {
		tell_refused(why);
		config_free(config);
	} else if (process_spawn(ps, config) != 0 || process_listen(ps, config, &now) != 0) {
		config_free(config);
		process_spawn_drop(ps);
		tell_refused(see_before);
		status = EX_UNAVAILABLE;
	} else if (generation_start(ps, config, &now, process_descriptors(config_global(config))) !=
		   0) {
		tell_refused(see_before);
	} else {
		process_log_form(ps, config_global(config));
		generation_adopts(ps, process_newest(ps));
		process_drain(ps, old);
		log_event(LOG_INFO, NULL, "reloaded", LF_STR("file", ps->opt->file));
		process_control_open(ps, config);
		status = 0;
	}
	note_outcome(ps, status);
	buf_free(&err);
	buf_free(&warn);
}

static void
end(struct process *ps)
{
	process_report(ps, "READY=1");
	if (ps->reload_again && !ps->draining)
		process_reload(ps);
	else if (ps->upgrade.wanted && !ps->draining)
		process_upgrade(ps);
}

static void
refuse(struct process *ps, const char *why)
{
	(void)log_overhear(&ps->last.said);
	log_event(LOG_ERROR, NULL, "reload.refused",
	    LF_STR("what", "the configuration was not read"), LF_STR("why", why),
	    LF_STR("then", "the old configuration stays in use"));
	note_outcome(ps, EX_TEMPFAIL);
	end(ps);
}

void
process_reload(struct process *ps)
{
	int err;

	if (ps->draining) {
		const char *why = ps->upgrade.retired
				      ? "a newer process serves: send USR1 to that one"
				      : "the server is stopping";

		log_event(LOG_ERROR, NULL, "reload.refused",
		    LF_STR("what", "the configuration was not read"), LF_STR("why", why));
		process_control_refuse(ps, CONTROL_RELOAD, why);
		return;
	}
	if (ps->load.fd >= 0 || ps->upgrade.fd >= 0) {
		ps->reload_again = true;
		return;
	}
	ps->reload_again = false;
	ps->control.turn[CONTROL_RELOAD]++;
	ps->last.said.n = 0;
	notify_reloading();
	err = helper_load_start(ps->helper, &ps->load);
	if (err != 0)
		refuse(ps, err == -EPIPE ? HELPER_LOST " reload again" : strerror(-err));
}

void
process_reload_more(struct process *ps)
{
	struct sources *sources;
	char why[1024];

	if (ps->load.fd < 0 || !helper_load_more(&ps->load, why, sizeof(why)))
		return;
	sources = ps->load.sources;
	ps->load.sources = NULL;
	if (sources == NULL) {
		refuse(ps, why);
		return;
	}
	reload_start_generation(ps, sources);
	end(ps);
}
