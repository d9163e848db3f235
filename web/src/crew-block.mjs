// SPDX-License-Identifier: Apache-2.0

// The block of memory by which the program tells its threads what to do: see gpu/simd/crew_js.go. Its words of 32 bits are:

/** How often a job was opened or closed: it is open while the number is odd. */
export const EPOCH = 0;
/** How many threads sleep until EPOCH changes. */
export const SLEEPING = 1;
/** How many threads are in the job. What follows does not change until none is. */
export const BUSY = 2;
/** The number of the first workgroup that nobody has taken. */
export const NEXT = 3;
/** How many workgroups there are. */
export const TOTAL = 4;
/** How many of them a thread takes at a time, at most. */
export const MOST = 5;
/** How many threads may take some, the program's own included. */
export const THREADS = 6;
/** The argument "args" of the kernel's function. */
export const ARGS = 7;
/** The number of the kernel's module, and the address and the length of its text. */
export const MODULE = 8;
export const TEXT = 9;
export const LENGTH = 10;
/** What the kernel's function returned when a thread failed. */
export const RESULT = 11;
/** Whether the program sleeps until BUSY changes. */
export const WAITING = 12;
/** The addresses of the threads' scratch memories. */
export const SCRATCH = 16;
/** Characters of an exception, up to a zero. */
export const TRAP = 80;
/** How many words there are. */
export const WORDS = 128;

/** The most threads. */
export const MOST_THREADS = TRAP - SCRATCH;
/** The result of a kernel that threw an exception. */
export const TRAPPED = -1 >>> 0;
