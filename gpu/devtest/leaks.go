// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/sublet-gpu/sublet/gpu"
)

// opened are the devices of Open that somebody may still keep.
var opened struct {
	sync.Mutex
	devices []weak.Pointer[gpu.Device]
}

// Main runs a package's tests and ends the program:
//
//	func TestMain(m *testing.M) { devtest.Main(m) }
//
// It is a failure if there are more goroutines afterwards than before, if anything keeps a device of [Open], or if one of the
// functions given returns what else is left.
func Main(m *testing.M, left ...func() string) {
	before := goroutines()
	code := m.Run()
	if code != 0 {
		os.Exit(code)
	}
	left = append(left, kept, func() string {
		if n := runtime.NumGoroutine(); n > before+fuzzing() {
			stacks := make([]byte, 1<<20)
			return fmt.Sprintf("%d goroutines, %d before the tests\n%s", n, before, stacks[:runtime.Stack(stacks, true)])
		}
		return ""
	})
	for _, what := range left {
		if !Settles(func() bool { return what() == "" }) {
			fmt.Println("after the tests:", what())
			code = 1
		}
	}
	os.Exit(code)
}

// goroutines is how many there are, and in pages one more: the runtime's own, for events.
func goroutines() int {
	if runtime.GOOS == "js" {
		return runtime.NumGoroutine() + 1
	}
	return runtime.NumGoroutine()
}

// fuzzing is how many goroutines Go's fuzzing leaves: one that waits for signals.
func fuzzing() int {
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		return 1
	}
	return 0
}

// kept says how many devices are kept.
func kept() string {
	opened.Lock()
	defer opened.Unlock()
	n := 0
	for _, p := range opened.devices {
		if p.Value() != nil {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d devices are kept", n, len(opened.devices))
}

// Settles collects garbage until a condition holds, and reports whether it came to that.
func Settles(holds func() bool) bool {
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
		runtime.GC()
	}
	return true
}

// Leaks fails if memory of a device is in use that nobody can reach. What a test forgot to close is collected.
func Leaks(t testing.TB, dev *gpu.Device) {
	t.Helper()
	if t.Failed() {
		return
	}
	if !Settles(func() bool { s := dev.Stats(); return s.LiveBytes == 0 && s.Buffers == 0 }) {
		s := dev.Stats()
		t.Errorf("%d bytes in %d buffers are left", s.LiveBytes, s.Buffers)
	}
}
