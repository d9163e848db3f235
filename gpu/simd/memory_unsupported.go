// SPDX-License-Identifier: Apache-2.0

//go:build !js && !linux && !darwin && !freebsd && !windows

package simd

import "errors"

var errNoReserve = errors.New("not on this platform")

func reserve(int) ([]byte, error) { return nil, errNoReserve }

func commit([]byte) error { return errNoReserve }

func release([]byte) error { return errNoReserve }
