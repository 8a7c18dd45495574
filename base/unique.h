/* base/unique.h -- ids that no other call in this process has, and, unless 128 random bits are
 * equal twice, no other process.
 *
 *   number of the call --two permutations, each with its own random keys--> 32 hexadecimal digits
 *
 * Not a secret: a person who sees many of them could compute others.
 * Cost     no lock and no system call; 20 ns.  The keys are read before main().
 * Thread   any.
 */
#ifndef BASE_UNIQUE_H
#define BASE_UNIQUE_H

#define UNIQUE_HEX 32u

void unique_hex(char out[UNIQUE_HEX]);

#endif
