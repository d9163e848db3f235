// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package calls

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// The variables by which a child is told what to do. SUBLET_CALLS_SEED alone repeats what a test did with that seed, and
// SUBLET_CALLS_LOG names a file for the last calls.
const (
	seedVariable = "SUBLET_CALLS_SEED"
	runVariable  = "SUBLET_CALLS_RUN" // goroutines and steps of each
	logVariable  = "SUBLET_CALLS_LOG"
)

// TestRandom calls everything with arguments of all kinds, for some thousand calls or in long tests a million: no call may panic,
// hang or end the process, and what was closed is gone. Each round is a process of its own, which some faults would end. Calls of
// one goroutine are the same again with the same seed, as far as time allows that.
func TestRandom(t *testing.T) {
	t.Run("one", func(t *testing.T) { rounds(t, 1, 3000) })
	t.Run("racing", func(t *testing.T) { rounds(t, 4, 600) })
}

func rounds(t *testing.T, callers, steps int) {
	n := 1
	if devtest.Long() {
		n, steps = 30, 6*steps
	}
	for i := range n {
		seed := cmp.Or(os.Getenv(seedVariable), strconv.Itoa(i+1))
		if devtest.Long() && os.Getenv(seedVariable) == "" {
			seed = strconv.FormatUint(rand.Uint64(), 10)
		}
		round(t, seed, callers, steps)
	}
}

// round has a child make calls, and shows the last ones if that fails.
func round(t *testing.T, seed string, callers, steps int) {
	self, err := os.Executable()
	devtest.Check(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestChild$", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), seedVariable+"="+seed, fmt.Sprintf("%s=%d %d", runVariable, callers, steps),
		"GOTRACEBACK=all", "XDG_RUNTIME_DIR="+os.TempDir())
	cmd.Dir = t.TempDir()
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	devtest.Check(t, err)
	var log []string
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if log = append(log, line); len(log) > 2000 {
			log = slices.Delete(log, 0, 1000)
		}
		if err != nil {
			break
		}
	}
	if path := os.Getenv(logVariable); path != "" {
		_ = os.WriteFile(path, []byte(strings.Join(log, "")), 0o600)
	}
	if err := cmd.Wait(); err != nil {
		text := said.String()
		t.Errorf("%s=%s, %d callers, %d steps: %v\n...\n%s\n%s\n%s", seedVariable, seed, callers, steps, err,
			strings.Join(log[max(0, len(log)-60):], ""),
			text[:min(len(text), 20000)], text[max(min(len(text), 20000), len(text)-6000):])
	}
}

// TestChild is what the test above runs as a process of its own.
func TestChild(t *testing.T) {
	var callers, steps int
	if n, _ := fmt.Sscan(os.Getenv(runVariable), &callers, &steps); n != 2 {
		return
	}
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	devtest.Check(t, err)
	devtest.Check(t, prepare("."))
	for _, name := range devtest.Drivers() { // what is made once for the process
		computes(t, devtest.Open(t, name))
	}
	limitMemory(t)
	before := runtime.NumGoroutine()

	out := &lockedWriter{w: os.Stdout}
	faults := &faults{seen: map[string]bool{}, out: os.Stderr}
	table, count := newTable(), new(atomic.Int64)
	newPool := func(slots int) *pool { return &pool{values: map[reflect.Type][]value{}, count: count, slots: slots} }
	var shared *pool
	if alone = callers == 1; !alone {
		shared = newPool(6)
	}
	var list []*caller
	for i := range callers {
		c := &caller{Rand: rand.New(rand.NewPCG(seed, uint64(i))), table: table, own: newPool(6), shared: shared, faults: faults, log: out}
		if callers > 1 {
			c.name = fmt.Sprint(i, "/")
		}
		list = append(list, c)
	}
	go watch(list, 3*time.Minute)
	var wg sync.WaitGroup
	for _, c := range list {
		wg.Go(func() {
			for range steps {
				c.step()
			}
		})
	}
	wg.Wait()
	pools := []*pool{}
	for _, c := range list {
		pools = append(pools, c.own)
	}
	if shared != nil {
		pools = append(pools, shared)
	}
	for _, p := range pools {
		list[0].endAll(p, false)
	}
	for _, p := range pools {
		for _, v := range p.values[deviceType] {
			empty(t, v)
		}
	}
	for _, p := range pools {
		list[0].endAll(p, true)
	}
	if len(faults.seen) > 0 {
		t.Error(len(faults.seen), "faults")
	}
	for _, name := range devtest.Drivers() {
		computes(t, devtest.Open(t, name))
	}
	settled(t, before)
}

// computes wants a right result from a device.
func computes(t *testing.T, dev *gpu.Device) {
	t.Helper()
	must := devtest.Must[*matrix.Dense[float32]](t)
	a := must(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
	b := must(matrix.Mul(a, a).Add(a).Eval())
	got := devtest.Must[[]float32](t)(b.Read(t.Context()))
	if want := []float32{8, 12, 18, 26}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	devtest.Check(t, a.Close())
	devtest.Check(t, b.Close())
	if s := dev.Stats(); s.LiveBytes != 0 || s.Buffers != 0 {
		t.Errorf("%+v", s)
	}
}

// empty wants a device whose users are all closed, or not reachable any more, to have nothing.
func empty(t *testing.T, v value) {
	dev, ok := v.Interface().(*gpu.Device)
	if !ok || dev.Usable() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for s := dev.Stats(); s.LiveBytes != 0 || s.Buffers != 0; s = dev.Stats() {
		select {
		case <-ctx.Done():
			t.Errorf("%s, %s: %+v", v.text, dev.Info().Driver, s)
			return
		case <-time.After(10 * time.Millisecond):
			runtime.GC()
		}
	}
}

// settled waits until there are no more goroutines than before.
func settled(t *testing.T, before int) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for runtime.NumGoroutine() > before+2 { // with the watch, and a context's
		select {
		case <-ctx.Done():
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		case <-time.After(10 * time.Millisecond):
			runtime.GC()
		}
	}
}

// limitMemory lets the process take so much more that sizes which were not checked show, and others do not.
func limitMemory(t *testing.T) {
	if raceEnabled {
		return // the race detector has terabytes of addresses
	}
	status, err := os.ReadFile("/proc/self/statm")
	devtest.Check(t, err)
	var pages uint64
	_, err = fmt.Sscan(string(status), &pages)
	devtest.Check(t, err)
	most := pages*uint64(os.Getpagesize()) + 12<<30
	devtest.Check(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most}))
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}
