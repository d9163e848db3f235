// SPDX-License-Identifier: Apache-2.0

//go:build !js

package gpu

import (
	"log/slog"
	"os"
	"time"
)

const lean = false

func debugVariable() string { return getenv("SUBLET_DEBUG") }

// defaultLogger writes to standard error.
func defaultLogger(adapter string) Logger {
	h := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})
	return slog.New(h).With("adapter", adapter)
}

// now is the time in milliseconds.
func now() float64 { return float64(time.Now().UnixNano()) / 1e6 }
