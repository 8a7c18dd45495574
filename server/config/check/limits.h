/* server/config/check/limits.h -- limits on the logs, hosts and programs that a configuration may
 * name.  More is refused when it is loaded, with file and line: by -t, a reload, an upgrade and a
 * start alike, so that no table further down is ever full.
 */
#ifndef SERVER_CONFIG_LIMITS_H
#define SERVER_CONFIG_LIMITS_H

#define CFG_LOGS_MAX         4096u  /* access logs; each has a thread and a descriptor */
#define CFG_LISTENS_MAX      64u    /* addresses to listen on */
#define CFG_APPLICATIONS_MAX 256u   /* that are started */
#define CFG_HOSTS_MAX        4096u  /* names of hosts of applications; each is looked up */
#define CFG_PROGRAMS_MAX     32768u /* directories, interpreters and variables of CGI */
#define CFG_NAME_MAX         1024u  /* bytes of a name that the helper opens, with the NUL */

#endif
