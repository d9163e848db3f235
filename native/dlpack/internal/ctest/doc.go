// SPDX-License-Identifier: Apache-2.0

// Package ctest is the other side of DLPack for tests: a consumer and a producer written in C. Without cgo it is empty.
package ctest
