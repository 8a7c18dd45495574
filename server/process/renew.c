/* server/process/renew.c -- certificates that change while the server runs.
 *
 *   main thread --digest of what is known--> helper process --fork--> a child waits for a change
 *   server/config/certificates.h <--- main thread <------- record of all files
 *        '--> new connections get the new certificate
 *
 * Only the newest generation is looked after.  A certificate that cannot be used leaves the last
 * one in use, and is logged once.
 */
#include <glib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/tls/stek.h"
#include "server/config/certificates.h"
#include "server/config/record.h"
#include "server/config/resources.h"
#include "server/config/ticket_file.h"
#include "server/config/verifiers.h"
#include "server/process/impl.h"

#define AGAIN_MS    1000u    /* the helper has died, or has too much to do */
#define WAKE_MAX_MS 3600000u /* the clock may be set */

static struct certificates *
certificates_of(const struct process *ps)
{
	return (resources_certificates(process_newest(ps)->resources));
}

static struct verifiers *
verifiers_of(const struct process *ps)
{
	return (resources_verifiers(process_newest(ps)->resources));
}

static struct ticket_file *
tickets_of(const struct process *ps)
{
	return (resources_tickets(process_newest(ps)->resources));
}

/* For status pages. */
static void
note(struct process *ps)
{
	struct certificates_state now = certificates_state(certificates_of(ps));
	unsigned others = verifiers_refused(verifiers_of(ps)) + ticket_file_refused(tickets_of(ps));

	shared_set(ps->counters_list.certificates, now.n);
	shared_set(ps->counters_list.certificates_refused, now.refused + others);
	shared_set(ps->counters_list.certificates_end_s, now.ends_s);
}

/* ---- one record */

static void
renewed(void *arg, const char *file, const char *why, const char *unstapled)
{
	struct counters_list *all = &((struct process *)arg)->counters_list;

	if (why == NULL) {
		shared_set(all->renewals, all->renewals + 1);
		log_event(LOG_INFO, NULL, "certificate.renewed", LF_STR("file", file));
		if (unstapled != NULL)
			log_event(LOG_WARN, NULL, "certificate.unstapled", LF_STR("why", unstapled),
			    LF_STR("then", "clients do not get the OCSP response"),
			    LF_STR("do", "renew the file; it is read again when it changes"));
		return;
	}
	shared_set(all->renewals_refused, all->renewals_refused + 1);
	log_event(LOG_ERROR, NULL, "certificate.refused", LF_STR("why", why),
	    LF_STR("then", "the last certificate stays in use"),
	    LF_STR("do", "correct the files; they are read again when they change"));
}

static void
tickets_renewed(void *arg, const char *file, const char *why, const char *unused)
{
	struct counters_list *all = &((struct process *)arg)->counters_list;

	if (why == NULL) {
		shared_set(all->renewals, all->renewals + 1);
		log_event(LOG_INFO, NULL, "tickets.renewed", LF_STR("file", file));
		return;
	}
	shared_set(all->renewals_refused, all->renewals_refused + 1);
	log_event(LOG_ERROR, NULL, "tickets.refused", LF_STR("why", why),
	    LF_STR("then", "the last keys stay in use until they end"),
	    LF_STR("do", "correct the file; it is read again when it changes"));
}

static void
take(struct process *ps, struct sources *sources)
{
	g_free(ps->renewal.known);
	ps->renewal.known = sources_digest(sources);
	certificates_renew(certificates_of(ps), process_newest(ps)->config, sources, renewed, ps);
	verifiers_renew(verifiers_of(ps), process_newest(ps)->config, sources, renewed, ps);
	ticket_file_renew(tickets_of(ps), process_newest(ps)->config, sources, tickets_renewed, ps);
	note(ps);
}

/* ---- the end of the last key of a file */

/* 0: there is none, or the log has it. */
static uint64_t
end_to_tell(const struct process *ps)
{
	uint64_t end_s = tls_stek_end_s();

	return (end_s != ps->renewal.end_s ? end_s : 0);
}

static void
tell_end(struct process *ps)
{
	uint64_t end_s = end_to_tell(ps);

	if (end_s == 0 || clock_wall_ns() / NS_PER_S <= end_s)
		return;
	ps->renewal.end_s = end_s;
	log_event(LOG_WARN, NULL, "tickets.ended",
	    LF_STR("why", "no newer key has come by ssl.stek-file"),
	    LF_STR("then", "clients of TLS do not resume their sessions"),
	    LF_STR("do", "write a key; the file is read again when it changes"));
}

/* ---- asking */

/* A helper that waited for a while, and then ended, has not failed: it does so once a day, and when
 * another one takes its place. */
static void
failed(struct process *ps, const char *why)
{
	struct renewal *r = &ps->renewal;
	uint64_t now = clock_mono_ns();

	if (now - r->asked_ns > AGAIN_MS * NS_PER_MS)
		r->failed = 0;
	r->again_ns = now + AGAIN_MS * NS_PER_MS;
	if (r->failed++ == 1) /* one may be because the helper died */
		log_event(LOG_WARN, NULL, "certificate.unwatched", LF_STR("why", why),
		    LF_STR("then", "a renewed certificate is used after a reload"));
}

static void
ask(struct process *ps)
{
	struct renewal *r = &ps->renewal;
	int err;

	r->asked_ns = clock_mono_ns();
	r->again_ns = 0;
	err = helper_renew_start(ps->helper, r->known != NULL ? r->known : "-",
	    certificates_list(process_newest(ps)->config), &r->load);
	if (err != 0)
		failed(ps, strerror(-err));
}

void
process_renew_stop(struct process *ps)
{
	helper_load_stop(&ps->renewal.load);
	g_free(ps->renewal.known);
	ps->renewal = (struct renewal){ .load.fd = -1 };
}

void
process_renew_begin(struct process *ps)
{
	process_renew_stop(ps);
	note(ps);
	if (ps->helper != NULL && shared_get(ps->counters_list.certificates) != 0)
		ask(ps);
}

/* ---- for the main thread */

static void
wake_at(int *timeout_ms, uint64_t now_ns, uint64_t at_ns)
{
	uint64_t ms = at_ns <= now_ns ? 0 : (at_ns - now_ns) / NS_PER_MS + 1;

	if (at_ns != 0 && (*timeout_ms < 0 || ms < (uint64_t)*timeout_ms))
		*timeout_ms = (int)MIN(ms, WAKE_MAX_MS);
}

int
process_renew_fd(const struct process *ps, int *timeout_ms)
{
	uint64_t end_s = ps->draining || ps->helper_gone ? 0 : end_to_tell(ps);

	wake_at(timeout_ms, clock_mono_ns(), ps->renewal.again_ns);
	wake_at(timeout_ms, clock_wall_ns(), end_s != 0 ? (end_s + 1) * NS_PER_S : 0);
	return (ps->renewal.load.fd);
}

void
process_renew_more(struct process *ps)
{
	struct renewal *r = &ps->renewal;
	struct sources *sources;
	char why[1024];

	if (ps->draining || ps->helper_gone) {
		process_renew_stop(ps);
		return;
	}
	tell_end(ps);
	if (r->load.fd < 0) {
		if (r->again_ns != 0 && r->again_ns <= clock_mono_ns())
			ask(ps);
		return;
	}
	if (!helper_load_more(&r->load, why, sizeof(why)))
		return;
	sources = r->load.sources;
	r->load.sources = NULL;
	if (sources == NULL) {
		failed(ps, why);
		return;
	}
	r->failed = 0;
	take(ps, sources);
	sources_free(sources);
	ask(ps);
}
