// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js && !linux

package cogent

import "time"

func nap(d time.Duration) { time.Sleep(d) }
