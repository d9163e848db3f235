// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || js

package core

import (
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// New returns a driver without adapters: this build has no cgo.
func New(b Binding) driver.Driver { return unsupported(b.Name, "built without cgo") }

// Raw returns nothing: this build has no cgo.
func Raw(any) (ref unsafe.Pointer, release func()) { return nil, func() {} }

// Origin returns nothing: this build has no cgo.
func Origin(any) (instance, adapter unsafe.Pointer) { return nil, nil }

// FromRaw returns nothing: this build has no cgo.
func FromRaw(any, unsafe.Pointer) any { return nil }

// Inspect returns nothing: this build has no cgo.
func Inspect(driver.Device) Inspection { return Inspection{} }
