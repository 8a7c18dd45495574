/* io/sandbox_impl.h -- between sandbox.c and sandbox_calls.c. */
#ifndef IO_SANDBOX_IMPL_H
#define IO_SANDBOX_IMPL_H

/* Programs that run with a sanitizer need more: its threads, its search for leaks, the sources of its report. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Filters calls.  0; -ENOSYS: this kernel has no filters; or what the kernel said. */
int sandbox_filter(unsigned programs);

#endif
