// SPDX-License-Identifier: Apache-2.0

package devtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Script is a program that is run again and again while things go wrong.
type Script struct {
	Devices int
	Options []gpu.Option
	// Parts: memory is larger than the devices' largest buffers. Then a call that fails may have done a part of its work, and reading
	// brings results to the host.
	Parts  bool
	Sample bool // also of long tests
	// Open opens a device on which nothing goes wrong yet; nil: of the oracle.
	Open func(t testing.TB) *Faulty
	// New makes what the program works on. Nothing goes wrong meanwhile.
	New func(t testing.TB, devices []*gpu.Device) *Scene
}

// Scene is what a program works on. What its functions have in common are numbers to be compared.
type Scene struct {
	Steps  []Step
	Values []func() ([]float32, error) // what the objects hold
	Hosts  [][]float32                 // memory of the caller's that is wrapped
	Reset  func() error                // makes everything as at the beginning: host memory, touched, and new objects in place of others
	Close  func() error                // of all objects
}

// Step is one call that changes something, and returns what it has computed. One that fails has changed nothing.
type Step struct {
	Name string
	Do   func() ([]float32, error)
}

// state is what a scene holds after a step.
type state struct {
	output        []float32
	values, hosts [][]float32
}

// injection is one run of a script.
type injection struct {
	*Script
	t       testing.TB
	what    string
	devices []*gpu.Device
	faulty  []*Faulty
	scene   *Scene
	clean   []state // after each step; the first before all of them
	kind    Fault
	rounds  int // how often the program begins anew with what is planned
}

// typed are the errors that an injected fault may be.
var typed = map[Fault][]error{
	Lose: {fault.ErrDeviceLost}, LoseAfter: {fault.ErrDeviceLost}, NoMemory: {fault.ErrNoMemory}, Refuse: {fault.ErrInvalid},
}

func isTyped(err error, f Fault) bool {
	return slices.ContainsFunc(typed[f], func(want error) bool { return errors.Is(err, want) })
}

// Watch ends the process, with the stacks of all goroutines, if what it watches goes on for minutes. The caller stops it.
func Watch(what func() string) (stop func() bool) {
	return time.AfterFunc(5*time.Minute, func() {
		debug.SetTraceback("all")
		panic("devtest: this hangs: " + what())
	}).Stop
}

// open makes the devices and the scene.
func (s *Script) open(t testing.TB) *injection {
	in := &injection{Script: s, t: t}
	for range s.Devices {
		f := s.device(t)
		d := Must[*gpu.Device](t)(gpu.Open(t.Context(), append(slices.Clip(s.Options), gpu.WithDevice(f))...))
		t.Cleanup(func() { _ = d.Close() })
		in.devices, in.faulty = append(in.devices, d), append(in.faulty, f)
	}
	in.scene = s.New(t, in.devices)
	return in
}

func (s *Script) device(t testing.TB) *Faulty {
	if s.Open != nil {
		return s.Open(t)
	}
	return NewFaulty(Oracle(t), nil)
}

// EveryFault runs the script once without faults, and then once for each call that a device's driver gets and each of the faults, if it
// can happen to that call, or in short tests for so many of them. It returns how many faults came about.
//
// Each call then returns what it returned without a fault, or an error that says what happened. After an error everything holds what it
// held before, host memory as a whole; what was lost with a device or in a refused batch says so, and is the host's after Touch. Then the
// program runs once more on the same objects, with the right results. No buffers, bytes or goroutines are left.
func (s Script) EveryFault(t *testing.T, sample int, faults ...Fault) (fired int) {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	clean, calls := s.record(t)
	type place struct {
		device, call int
		op           string
		fault        Fault
	}
	var places []place
	for d, ops := range calls {
		for n, op := range ops {
			for _, f := range faults {
				if c := (Call{op, n}); (f != NoMemory || c.Takes()) && (f != Refuse || op == "Submit") {
					places = append(places, place{d, n, op, f})
				}
			}
		}
	}
	if (!Long() || s.Sample) && len(places) > sample {
		rng := rand.New(rand.NewPCG(1, uint64(len(places))))
		rng.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		places = places[:sample]
	}
	for _, p := range places {
		in := s.open(t)
		in.clean, in.kind = clean, p.fault
		in.what = fmt.Sprintf("device %d, call %d (%s), fault %d", p.device, p.call, p.op, p.fault)
		in.faulty[p.device].Arm(At(p.call, p.fault))
		in.run()
		fired += in.faulty[p.device].Fired(p.fault)
	}
	Settled(t, goroutines)
	t.Logf("%d faults at %d places", fired, len(places))
	return fired
}

// EveryAllocation runs the script while every k-th call that may take memory fails, for k from 1 to most.
func (s Script) EveryAllocation(t *testing.T, most int) (fired int) {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	clean, _ := s.record(t)
	for k := 1; k <= most; k++ {
		for first := range k {
			in := s.open(t)
			in.clean, in.kind, in.rounds = clean, NoMemory, 20
			in.what = fmt.Sprintf("every allocation number %d modulo %d", first, k)
			for _, f := range in.faulty {
				n := 0
				f.Arm(func(c Call) Fault {
					if !c.Takes() {
						return None
					}
					if n++; n%k == first {
						return NoMemory
					}
					return None
				})
			}
			in.run()
			for _, f := range in.faulty {
				fired += f.Fired(NoMemory)
			}
			if t.Failed() {
				return fired
			}
		}
	}
	Settled(t, goroutines)
	t.Logf("%d failures", fired)
	return fired
}

// record runs the script without faults: what everything holds after each step, and once more without looking what the drivers do.
func (s *Script) record(t testing.TB) (clean []state, calls [][]string) {
	t.Helper()
	in := s.open(t)
	clean = append(clean, in.look(t))
	for _, step := range in.scene.Steps {
		out, err := step.Do()
		if err != nil {
			t.Fatalf("%s: %v", step.Name, err)
		}
		st := in.look(t)
		st.output = out
		clean = append(clean, st)
	}
	in.end()
	in = s.open(t)
	calls = make([][]string, s.Devices)
	for i, f := range in.faulty {
		f.Arm(func(c Call) Fault {
			calls[i] = append(calls[i], c.Op)
			return None
		})
	}
	for _, step := range in.scene.Steps {
		if _, err := step.Do(); err != nil {
			t.Fatalf("%s: %v", step.Name, err)
		}
	}
	in.end()
	return clean, calls
}

func (in *injection) look(t testing.TB) (s state) {
	t.Helper()
	for i, value := range in.scene.Values {
		v, err := value()
		if err != nil {
			t.Fatalf("value %d: %v", i, err)
		}
		s.values = append(s.values, v)
	}
	for _, h := range in.scene.Hosts {
		s.hosts = append(s.hosts, slices.Clone(h))
	}
	return s
}

func (in *injection) failed(format string, args ...any) {
	in.t.Helper()
	in.t.Fatalf("%s: %s", in.what, fmt.Sprintf(format, args...))
}

// run runs the program with what is planned, and again without.
func (in *injection) run() {
	in.t.Helper()
	defer Watch(func() string { return in.what })()
	tries := 0
	for i := 0; i < len(in.scene.Steps); i++ {
		step := in.scene.Steps[i]
		out, err := step.Do()
		if err == nil {
			if !slices.Equal(out, in.clean[i+1].output) {
				in.failed("%s: %s", step.Name, differences(out, in.clean[i+1].output))
			}
			tries = 0
			continue
		}
		if !isTyped(err, in.kind) {
			in.failed("%s: %v", step.Name, err)
		}
		plans := in.disarm()
		if !in.unchanged(i) {
			if in.rounds--; in.rounds < 0 {
				in.again()
				return
			}
			if err := in.scene.Reset(); err != nil {
				in.failed("Reset: %v", err)
			}
			in.rearm(plans)
			i, tries = -1, 0
			continue
		}
		if tries++; tries < 20 { // then memory is back
			in.rearm(plans)
		} else if in.Parts && tries > 20 { // a part that only copies others was in a refused batch, and says so until Touch
			in.again()
			return
		} else if tries > 20 {
			in.failed("%s fails again and again: %v", step.Name, err)
		}
		i-- // the same step once more
	}
	if in.fired() { // or it is to happen while everything is closed
		in.disarm()
		if !in.unchanged(len(in.scene.Steps)) {
			in.again()
			return
		}
	}
	in.end()
}

func (in *injection) fired() bool {
	return slices.ContainsFunc(in.faulty, func(f *Faulty) bool { return f.Fired(in.kind) > 0 })
}

// disarm ends what is planned, and brings devices back that are lost.
func (in *injection) disarm() (plans []Plan) {
	in.t.Helper()
	for i, f := range in.faulty {
		f.mu.Lock()
		plans, f.plan = append(plans, f.plan), nil
		f.mu.Unlock()
		if f.IsLost() {
			next := in.device(in.t)
			next.fired = f.fired
			if err := in.devices[i].Reopen(in.t.Context(), gpu.WithDevice(next)); err != nil {
				in.failed("Reopen: %v", err)
			}
			in.faulty[i] = next
		}
	}
	return plans
}

func (in *injection) rearm(plans []Plan) {
	for i, f := range in.faulty {
		f.mu.Lock()
		f.plan = plans[i]
		f.mu.Unlock()
	}
}

// unchanged wants everything to be as it was before step i, which failed, and reports whether it is. What was lost, or was to be written
// by a batch that was refused, says so; then host memory is what it was, or has already what the step was to bring there.
func (in *injection) unchanged(i int) bool {
	in.t.Helper()
	was, next := in.clean[i], in.clean[min(i+1, len(in.clean)-1)]
	submitted := in.kind != NoMemory || slices.ContainsFunc(in.faulty, func(f *Faulty) bool { return f.refusedList })
	for k, h := range in.scene.Hosts {
		known := [][]float32{was.hosts[k], next.hosts[k]}
		for _, st := range in.clean[:i+1] {
			if in.Parts {
				known = append(known, st.hosts[k])
			}
		}
		in.each(fmt.Sprintf("before step %d host memory %d", i, k), h, known...)
	}
	whole := true
	for k, value := range in.scene.Values {
		v, err := value()
		what := fmt.Sprintf("before step %d value %d", i, k)
		switch {
		case err != nil && (!submitted || !isTyped(err, in.kind)):
			in.failed("%s: %v", what, err)
		case err != nil || slices.Equal(v, was.values[k]):
		case in.Parts:
			in.each(what, v, was.values[k], next.values[k])
			whole = false
		case in.kind > LoseAfter || !slices.Equal(v, next.values[k]):
			in.failed("%s is %s", what, differences(v, was.values[k]))
		}
		whole = whole && err == nil
	}
	return whole && in.kind > LoseAfter
}

// each wants every number to be what it is in one of the lists.
func (in *injection) each(what string, got []float32, known ...[]float32) {
	in.t.Helper()
	for e, v := range got {
		if !slices.ContainsFunc(known, func(list []float32) bool { return e < len(list) && list[e] == v }) {
			in.failed("%s: %s", what, differences(got, known[0]))
		}
	}
}

// differences tells how numbers differ from what they should be.
func differences(got, want []float32) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d numbers in place of %d", len(got), len(want))
	}
	n, first := 0, -1
	for i := range got {
		if got[i] != want[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if n == 0 {
		return "as wanted"
	}
	return fmt.Sprintf("%d of %d numbers differ, the first is number %d, %v in place of %v", n, len(got), first, got[first], want[first])
}

// again runs the program without faults on the same objects.
func (in *injection) again() {
	in.t.Helper()
	if err := in.scene.Reset(); err != nil {
		in.failed("Reset: %v", err)
	}
	for i, step := range in.scene.Steps {
		out, err := step.Do()
		if err != nil || !slices.Equal(out, in.clean[i+1].output) {
			in.failed("once more, %s: %s (%v)", step.Name, differences(out, in.clean[i+1].output), err)
		}
	}
	last := in.clean[len(in.clean)-1]
	for k, v := range in.look(in.t).values {
		if !slices.Equal(v, last.values[k]) {
			in.failed("once more, value %d: %s", k, differences(v, last.values[k]))
		}
	}
	in.end()
}

// end closes everything and wants nothing to be left.
func (in *injection) end() {
	in.t.Helper()
	if err := in.scene.Close(); err != nil && !isTyped(err, in.kind) {
		in.failed("Close: %v", err)
	}
	for i, d := range in.devices {
		if in.faulty[i].IsLost() { // it counts nothing any more
			in.disarm()
		}
		if st := d.Stats(); st.Buffers != 0 || st.LiveBytes != 0 {
			in.failed("device %d has %d buffers and %d bytes", i, st.Buffers, st.LiveBytes)
		}
		if err := d.Close(); err != nil && !isTyped(err, in.kind) {
			in.failed("closing device %d: %v", i, err)
		}
	}
}

// Settled fails if there are more goroutines than there were, and do not go away.
func Settled(t testing.TB, most int) {
	t.Helper()
	if runtime.GOOS == "js" {
		most++ // the runtime's own, for events
	}
	for range 1000 {
		if runtime.NumGoroutine() <= most {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), most, stacks[:runtime.Stack(stacks, true)])
}
