// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"errors"
	"os"
)

// hold is not possible.
func hold(string) (*os.File, error) { return nil, errors.ErrUnsupported }
