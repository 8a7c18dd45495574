/* io/start/sandbox_impl.h -- shared by sandbox.c and sandbox_calls.c. */
#ifndef IO_SANDBOX_IMPL_H
#define IO_SANDBOX_IMPL_H

/* Builds with a sanitizer need more: its threads, its leak check, the sources of its report. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Filters system calls.  0; -ENOSYS: this kernel has no filters; or another error of the kernel. */
int sandbox_filter(unsigned programs);

#endif
