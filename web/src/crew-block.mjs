// SPDX-License-Identifier: Apache-2.0

// The block of memory by which a program tells its workers what to do: see gpu/simd/crew_js.go, which has the same numbers. It consists of
// words of 32 bits. The words from TOTAL to LENGTH and SCRATCH are written by the program while the job is closed and BUSY is 0, and read
// by workers that have added 1 to BUSY and then seen that the job is open. While it is open, workers access the others by Atomics.

/** How often the job was opened or closed: it is open while the number is odd. */
export const EPOCH = 0;
/** How many workers sleep until EPOCH changes. */
export const SLEEPING = 1;
/** How many workers are in the job, or find out that it is closed. */
export const BUSY = 2;
/** The number of the first workgroup that no thread has taken. */
export const NEXT = 3;
/** How many workgroups there are. */
export const TOTAL = 4;
/** The most workgroups that a thread takes at a time. */
export const MOST = 5;
/** How many threads may take workgroups, the program's own included. */
export const THREADS = 6;
/** The argument "args" of the kernel's function. */
export const ARGS = 7;
/** The number of the kernel's module, and the address and the length in bytes of its binary. Numbers are not used again. */
export const MODULE = 8;
export const TEXT = 9;
export const LENGTH = 10;
/** The first result of the kernel's function in a worker that was not 0. */
export const RESULT = 11;
/** Whether the program sleeps until BUSY changes. */
export const WAITING = 12;
/** The addresses of the workers' scratch memories. */
export const SCRATCH = 16;
/** The text of a worker's exception: UTF-16 units, one a word, up to a zero. */
export const TRAP = 80;
/** How many words there are. */
export const WORDS = 128;

/** The most threads, the program's own included. */
export const MOST_THREADS = TRAP - SCRATCH;
/** The result of a kernel that threw an exception. */
export const TRAPPED = -1 >>> 0;
