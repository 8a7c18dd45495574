/* call-filter -- runs a command that may make the listed system calls only.
 *
 *   call-filter kill|EPERM FILE COMMAND [ARG]...
 *
 * FILE has the names of the calls, one per line; t/lib/Test/UnitFilter.pm makes it from a unit of
 * systemd.  Any other call ends the process with SIGSYS ("kill"), or fails as it does under systemd
 * ("EPERM").  The filter holds for all processes that come of this one.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EX_USAGE   64
#define EX_NOINPUT 66
#define EX_OSERR   71

/* A name that this library does not know is a call that it cannot allow: the same happens to
 * systemd. */
static int
allow_listed(scmp_filter_ctx ctx, FILE *f)
{
	char line[128];
	int nr, err = 0;

	while (err == 0 && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		nr = seccomp_syscall_resolve_name(line);
		if (nr >= 0)
			err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	return (err);
}

int
main(int argc, char **argv)
{
	scmp_filter_ctx ctx;
	FILE *f;
	int err;

	if (argc < 4 || (strcmp(argv[1], "kill") != 0 && strcmp(argv[1], "EPERM") != 0)) {
		fprintf(stderr, "usage: call-filter kill|EPERM FILE COMMAND [ARG]...\n");
		return (EX_USAGE);
	}
	f = fopen(argv[2], "re");
	if (f == NULL) {
		fprintf(stderr, "call-filter: %s: %s\n", argv[2], strerror(errno));
		return (EX_NOINPUT);
	}
	ctx = seccomp_init(
	    strcmp(argv[1], "kill") == 0 ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM));
	err = ctx == NULL ? -ENOMEM : allow_listed(ctx, f);
	fclose(f);
	if (err == 0)
		err = seccomp_load(ctx);
	if (err != 0) {
		fprintf(stderr, "call-filter: %s\n", strerror(-err));
		return (EX_OSERR);
	}
	seccomp_release(ctx);
	execvp(argv[3], argv + 3);
	fprintf(stderr, "call-filter: %s: %s\n", argv[3], strerror(errno));
	return (127);
}
