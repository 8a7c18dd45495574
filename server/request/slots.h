/* server/request/slots.h -- bytes that one file owns in each request, connection or worker, as a
 * per-CPU variable of Linux has bytes for each CPU.
 *
 *   static REQUEST_SLOT(struct counted, mine);      in the .c file that owns them
 *   struct counted *m = request_slot(r, mine);      those of this request
 *
 * The linker collects the variables of a kind in one section.  The place of a variable in it is the
 * place of its bytes in the slots of a request, so no other file names them, nothing is registered,
 * and nothing is allocated or looked up for a request.  The variables themselves are not used:
 * their names begin with slot_, so that a bare use does not compile.
 *
 *   REQUEST_SLOT     zero when a head begins
 *   CONNECTION_SLOT  in a request, too; zero when a connection takes its struct request: what the
 *                    sends of one client share.  An idle connection has none, so it does not last
 *                    as long as the connection
 *   WORKER_SLOT      zero when the worker begins; struct module has worker_stop for what they hold,
 *                    so a handler whose slot holds something has a row in modules.def
 */
#ifndef SERVER_REQUEST_SLOTS_H
#define SERVER_REQUEST_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#define SLOT_ALIGN 8u
/* The compiler does not raise an alignment that is named, so small slots lie side by side. */
#define SLOT_OF(section_, type, name)                                                            \
	type slot_##name __attribute__((section(#section_), aligned(SLOT_ALIGN), used)) = { 0 }; \
	_Static_assert(_Alignof(type) <= SLOT_ALIGN, "slots have room for pointers and integers")

#define REQUEST_SLOT(type, name)    SLOT_OF(request_slots, type, name)
#define CONNECTION_SLOT(type, name) SLOT_OF(connection_slots, type, name)
#define WORKER_SLOT(type, name)     SLOT_OF(worker_slots, type, name)

/* Ends of the sections, from the linker.  Weak: a unit test may have none of a kind. */
#define SLOT_ENDS(section_)                                                           \
	extern char __start_##section_[] __attribute__((weak, visibility("hidden"))); \
	extern char __stop_##section_[] __attribute__((weak, visibility("hidden")))
SLOT_ENDS(request_slots);
SLOT_ENDS(connection_slots);
SLOT_ENDS(worker_slots);

#define SLOT_BYTES(section_)                                                               \
	(((uintptr_t)__stop_##section_ - (uintptr_t)__start_##section_ + SLOT_ALIGN - 1) / \
	    SLOT_ALIGN * SLOT_ALIGN)
#define SLOT_AT(section_, base, name)                                  \
	((__typeof__(slot_##name) *)((uintptr_t)(base) + (uintptr_t) & \
				     (slot_##name) - (uintptr_t)__start_##section_))

#define request_slot(r, name) SLOT_AT(request_slots, (r)->slots, name)
#define connection_slot(r, name) \
	SLOT_AT(connection_slots, (uintptr_t)(r)->slots + SLOT_BYTES(request_slots), name)
#define worker_slot(w, name) SLOT_AT(worker_slots, (w)->slots, name)

#endif
