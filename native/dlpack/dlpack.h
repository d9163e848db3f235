// SPDX-License-Identifier: Apache-2.0
//
// What the Go side calls. Addresses travel as integers: the garbage collector must not look at foreign ones.

#ifndef SUBLET_DLPACK_H
#define SUBLET_DLPACK_H

#include <stdbool.h>

#include "dlpack_abi.h"

// sublet_dl_new returns zeroed memory for the structure, its shape and its strides, in which addresses and deleter are set, or 0.
// The deleter gives the context to Go, once, and frees everything.
uintptr_t sublet_dl_new(bool legacy, int32_t ndim, uintptr_t context);

// sublet_dl_delete calls a deleter that is not NULL. Both kinds of managed tensor have the same kind.
void sublet_dl_delete(uintptr_t deleter, uintptr_t self);

// sublet_dl_context returns the context of a managed tensor of ours, 0 for others.
uintptr_t sublet_dl_context(uintptr_t deleter, uintptr_t context);

#endif
