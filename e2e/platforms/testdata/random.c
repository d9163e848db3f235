// SPDX-License-Identifier: Apache-2.0

// bcryptprimitives.dll, from which programs in Go and Rust take random numbers, for versions of Wine that have none.

#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, size); }
