// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// device is one of the walk's.
type device struct {
	*gpu.Device
	name    string
	limited bool // may refuse for want of memory
	kernels bool // compiles WGSL
}

// world is what the players of a walk share.
type world struct {
	t       *testing.T
	seed    uint64
	dir     string // for files
	devs    []*device
	players []*player
	lost    int // native devices that were lost so far
}

// player does one step after the other, on objects of its own and devices of everybody's.
type player struct {
	*world
	name     string
	ctx      context.Context
	rng      *rand.Rand
	families []family
	objects  []object
	roots    []*root // of closed matrices
	steps    int
	log      []string
}

// family are the matrices of one element type.
type family interface {
	act() string
	check()
	close()
	survive(dev *device) // the loss of a device that is back
}

// object is anything else.
type object interface {
	act(p *player) string
	check(p *player)
	close(p *player)
	uses(dev *device) bool
}

// everyStep checks everything after each step, which finds faults earlier, or others.
var everyStep = os.Getenv("SUBLET_SOAK_CHECK") != ""

// failure is what a player panics with.
type failure string

func (p *player) fail(format string, args ...any) {
	panic(failure(fmt.Sprintf(format, args...)))
}

// must fails unless a call succeeded.
func (p *player) must(err error) {
	if err != nil {
		p.fail("%v", err)
	}
}

func must[V any](p *player) func(V, error) V {
	return func(v V, err error) V {
		p.must(err)
		return v
	}
}

// ok reports whether a call succeeded. Only limited devices may refuse, and only for want of memory.
func (p *player) ok(dev *device, err error) bool {
	if err != nil && (!dev.limited || !errors.Is(err, gpu.ErrNoMemory) && !errors.Is(err, gpu.ErrLimit)) {
		p.fail("on %s: %v", dev.name, err)
	}
	return err == nil
}

// refused fails unless a call failed as it should.
func (p *player) refused(what string, err error, want ...error) {
	if !slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) }) {
		p.fail("%s: %v, want %v", what, err, want)
	}
}

func (p *player) intn(n int) int     { return p.rng.IntN(n) }
func (p *player) chance(n int) bool  { return p.rng.IntN(n) == 0 }
func pick[V any](p *player, s []V) V { return s[p.intn(len(s))] }

// play makes steps, and returns why it had to stop.
func (p *player) play(steps int) (err error) {
	return p.guard(func() {
		for range steps {
			p.steps++
			p.log = append(p.log[max(0, len(p.log)-logged):], "?")
			var did string
			switch {
			case len(p.objects) > 0 && p.intn(5) == 0:
				o := pick(p, p.objects)
				did = o.act(p)
			case p.intn(25) == 0:
				did = p.replace()
			default:
				did = pick(p, p.families).act()
			}
			p.log[len(p.log)-1] = did
			if everyStep {
				p.check()
			}
		}
	})
}

// guard turns panics into errors with all that is needed to find out why.
func (p *player) guard(fn func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("seed %d, player %s, step %d: %s\n%s\n%s", p.seed, p.name, p.steps, v, strings.Join(p.log, "\n"), debug.Stack())
		default:
			err = fmt.Errorf("seed %d, player %s, step %d: panic: %v\n%s\n%s", p.seed, p.name, p.steps, v, strings.Join(p.log, "\n"), debug.Stack())
		}
	}()
	fn()
	return nil
}

// note logs what a step is about to do, for those that never end.
func (p *player) note(format string, args ...any) {
	p.log[len(p.log)-1] = fmt.Sprintf(format, args...)
}

// replace closes one of the objects or makes another.
func (p *player) replace() string {
	if i := p.intn(6); i < len(p.objects) {
		o := p.objects[i]
		p.note("close %T", o)
		o.check(p)
		o.close(p)
		p.objects = slices.Delete(p.objects, i, i+1)
		return fmt.Sprintf("closed %T", o)
	}
	o := pick(p, makers)(p)
	if o == nil {
		return "made nothing"
	}
	p.objects = append(p.objects, o)
	return fmt.Sprintf("made %T", o)
}

// some returns a device: any, or one that compiles WGSL.
func (p *player) some(kernels bool) *device {
	for {
		if d := pick(p, p.devs); d.kernels || !kernels {
			return d
		}
	}
}

func newPlayer(w *world, name string, stream uint64) *player {
	p := &player{world: w, name: name, ctx: w.t.Context(), rng: rand.New(rand.NewPCG(w.seed, stream))}
	f, h, i, u := newKind(p, &float32s), newKind(p, &halves), newKind(p, &int32s), newKind(p, &uint32s)
	f.others = []func() string{from(f, h), from(f, i), from(f, u), f.realFunctions}
	h.others = []func() string{from(h, f), from(h, i), h.realFunctions}
	i.others = []func() string{from(i, f), from(i, u)}
	u.others = []func() string{from(u, i), from(u, f)}
	p.families = []family{f, h, i, u}
	return p
}

func (w *world) open(name, driver string, opts ...gpu.Option) *device {
	w.t.Helper()
	d, err := gpu.Open(w.t.Context(), append(opts, gpu.WithDriver(driver))...)
	if err != nil {
		w.t.Fatal(err)
	}
	return &device{Device: d, name: name, limited: len(opts) > 0, kernels: driver != "cpu"}
}

// walk makes a walk of so many rounds and steps in each.
func walk(t *testing.T, seed uint64, rounds, steps int, dir string) *world {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &world{t: t, seed: seed, dir: dir}
	native := devtest.Drivers()[0]
	w.devs = []*device{
		w.open("oracle", "cpu"), w.open("native", native), w.open("second", native),
		w.open("small", native, gpu.WithMaxBuffer(4096)), w.open("scarce", native, gpu.WithMemory(128<<10)),
	}
	players := 1
	if rng.IntN(3) == 0 {
		players = 2 + rng.IntN(2)
	}
	for i := range players {
		w.players = append(w.players, newPlayer(w, strconv.Itoa(i), uint64(i+1)))
	}
	for round := range rounds {
		errs := make([]error, players)
		var wg sync.WaitGroup
		for i, p := range w.players {
			wg.Go(func() { errs[i] = p.play(steps) })
		}
		wg.Wait()
		errs = append(errs, w.between(rng, round))
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range w.players {
		if err := p.guard(p.end); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// between checks everything, collects garbage or loses a device, while the players wait.
func (w *world) between(rng *rand.Rand, round int) error {
	what := rng.IntN(6)
	dev := w.devs[rng.IntN(len(w.devs))]
	if what == 0 && dev.name != "oracle" && (w.lost > 1 || rng.IntN(4) > 0) {
		dev = w.devs[0] // each loss of a native device costs memory of the driver's
	}
	switch what {
	case 0:
		w.lose(dev)
	case 1:
		runtime.GC()
	}
	var errs []error
	for _, p := range w.players {
		errs = append(errs, p.guard(func() {
			p.log = append(p.log, fmt.Sprintf("round %d: %d %s", round, what, dev.name))
			switch what {
			case 0:
				p.survive(dev)
			case 2:
				p.check()
			}
		}))
	}
	return errors.Join(errs...)
}

// check compares everything with what it should be.
func (p *player) check() {
	for _, f := range p.families {
		f.check()
	}
	for _, o := range p.objects {
		o.check(p)
	}
}

func (p *player) survive(dev *device) {
	for i, o := range slices.Backward(p.objects) {
		if o.uses(dev) {
			o.close(p)
			p.objects = slices.Delete(p.objects, i, i+1)
		}
	}
	for _, f := range p.families {
		f.survive(dev)
	}
}

// end closes everything, in any order.
func (p *player) end() {
	p.check()
	p.rng.Shuffle(len(p.objects), func(i, j int) { p.objects[i], p.objects[j] = p.objects[j], p.objects[i] })
	for _, o := range p.objects {
		o.close(p)
	}
	p.rng.Shuffle(len(p.families), func(i, j int) { p.families[i], p.families[j] = p.families[j], p.families[i] })
	for _, f := range p.families {
		f.close()
	}
}

// lose loses a device and brings it back.
func (w *world) lose(dev *device) {
	w.t.Helper()
	devtest.Destroy(dev.Device)
	devtest.Check(w.t, dev.Reopen(w.t.Context()))
	if dev.kernels {
		w.lost++
	}
}

// TestSoak makes walks: a few, those of some minutes in long tests, or as many as fit into SUBLET_SOAK_TIME.
func TestSoak(t *testing.T) {
	first, walks, end := uint64(1), devtest.Times(3), time.Time{}
	if s := os.Getenv("SUBLET_SOAK_TIME"); s != "" {
		d, err := time.ParseDuration(s)
		devtest.Check(t, err)
		first, walks, end = uint64(time.Now().Unix()), 1<<30, time.Now().Add(d)
	}
	if s := os.Getenv("SUBLET_SOAK_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		devtest.Check(t, err)
		if first = seed; end.IsZero() {
			walks = 1
		}
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // so that what the library leaves there is seen
	a := newAccount(t, dir)
	for i := 0; i < walks && (end.IsZero() || time.Now().Before(end)) && !t.Failed(); i++ {
		a.settle(walk(t, first+uint64(i), rounds, roundSteps, dir))
	}
	a.finish()
}

// rounds and roundSteps are the length of a walk, logged is how many of the last steps a failure shows.
const rounds, roundSteps, logged = 12, 40, 60
