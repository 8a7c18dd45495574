/* server/process/memory.c -- server.lock-memory: what stays in memory, and what the log says of it.
 */
#include <string.h>

#include "base/log.h"
#include "io/start/lock_memory.h"
#include "server/process/impl.h"

#define KIB 1024u

static bool
stop(const char *socket, const struct conf *c, void *arg)
{
	return (false);
}

static bool
speaks_tls(const struct config *config)
{
	return (!config_each_secure(config, stop, NULL));
}

void
process_lock_program(const struct config *config, struct lock_memory *lm)
{
	*lm = (struct lock_memory){ 0 };
	if (strcmp(config_global(config)->lock_memory, "disable") != 0)
		lock_memory_program(lm, speaks_tls(config));
}

static const char *
what_is_left(const struct lock_memory *lm)
{
	if (lm->program == 0)
		return ("the program");
	return (lm->left != 0 ? "a part of the program" : "heap and stacks");
}

static void
log_left(const struct lock_memory *lm)
{
	log_event(LOG_WARN, NULL, "memory.not-locked", LF_STR("what", what_is_left(lm)),
	    LF_ERR("error", lm->err != 0 ? lm->err : lm->rest_err),
	    LF_U64("locked-kib", lm->program / KIB), LF_U64("left-kib", lm->left / KIB),
	    LF_U64("limit-kib", lm->limit / KIB),
	    LF_STR("then", "when memory is short, loops may wait for a disk"),
	    LF_STR("do", "raise the limit of locked memory: LimitMEMLOCK=infinity of systemd, or "
			 "ulimit -l unlimited; or set server.lock-memory"));
}

static bool
wants_rest(const struct conf *c)
{
	return (strcmp(c->lock_memory, "all") == 0 ||
		(strcmp(c->lock_memory, "auto") == 0 && lock_memory_may_swap()));
}

void
process_lock_rest(const struct conf *c, struct lock_memory *lm)
{
	if (strcmp(c->lock_memory, "disable") == 0)
		return;
	if (wants_rest(c))
		lock_memory_rest(lm);
	if (lm->err != 0 || lm->rest_err != 0)
		log_left(lm);
	else
		log_event(LOG_INFO, NULL, "memory.locked",
		    LF_STR("what", lm->rest ? "all" : "program"),
		    LF_U64("program-kib", lm->program / KIB));
}
