// SPDX-License-Identifier: Apache-2.0

// Package register adds the driver rajveer to those of package gpu in a program that imports it and is built with the tag rajveer:
//
//	import _ "github.com/sublet-gpu/sublet/native/rajveer/register"
package register

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/rajveer"
)

func init() { _ = gpu.Register(rajveer.New()) } // fails where the program has registered another of this name
