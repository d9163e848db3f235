// SPDX-License-Identifier: Apache-2.0

// Package sample has tests that end in every way, for the tests of the runner.
package sample

import (
	"fmt"
	"os"
	"testing"
)

func TestGood(t *testing.T) {
	t.Log("all is well with", os.Getenv("SAMPLE"))
	t.Run("part", func(t *testing.T) { fmt.Println("printed") })
}

func TestBad(t *testing.T) {
	t.Run("good", func(*testing.T) {})
	t.Run("bad", func(t *testing.T) { t.Error("the reason") })
}

func TestSkipped(t *testing.T) { t.Skip("for a test of the runner") }

func TestPanic(*testing.T) { panic("the end") }

// TestHang blocks the page, so that not even a timeout of Go's fires.
func TestHang(*testing.T) {
	for n := 0; n >= 0; n ^= 1 {
	}
}
