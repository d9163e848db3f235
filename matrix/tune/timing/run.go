// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// Options are those of [Run].
type Options struct {
	Work   []Work // nil: a default selection
	Rounds int    // how often each variant is timed, by turns; 0 for 15
	// Progress, unless it is nil, is called with each choice that was made and how many there are to make.
	Progress func(c *Choice, done, all int)
}

const (
	usualRounds = 15
	mostRounds  = 100
	// slow is how many times the usual time a variant may take in its first timings to be timed again.
	slow       = 2
	trials     = 2
	leastTime  = 5 * time.Millisecond // of one timing, which counts calls
	mostCalls  = 500
	contenders = 4 // how many are timed in as many rounds again, and as the first call, so often
	firsts     = 3
	// tolerance is how far results may be from the usual ones, relative to the largest.
	tolerance = 1e-4
)

// Run times the variants of kernels on the adapter of a device. It does so in rounds, so that other load on the machine affects all of
// them alike, and on further devices that it opens on the adapter, so that work queued on dev does not wait. The results are merged with
// known ones, nil for none, which stay as they are. If the adapter cannot be found, or no kernel has several variants on it, the error is
// [gpu.ErrUnsupported].
func Run(ctx context.Context, dev *gpu.Device, known *Results, o Options) (*Results, error) {
	const op = "Run"
	if err := fault.Ended(ctx, "tune: ", op); err != nil {
		return nil, err
	}
	if o.Rounds < 0 || o.Rounds > mostRounds {
		return nil, fail(op, gpu.ErrInvalid, o.Rounds, " rounds, the most are ", mostRounds)
	}
	if o.Rounds == 0 {
		o.Rounds = usualRounds
	}
	if o.Work == nil {
		o.Work = Suite()
	}
	for _, w := range o.Work {
		if why, code := w.wrong(); code != nil {
			return nil, fail("Run", code, w.String(), ": ", why)
		}
	}
	t, err := newTuner(ctx, dev)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.dev.Close() }()
	r := Fresh(dev.Info())
	if known != nil {
		r.Choices = append(r.Choices, known.Choices...)
	}
	for i, w := range o.Work {
		c, err := t.choose(ctx, &w, o.Rounds)
		if err != nil {
			return nil, err
		}
		if c != nil {
			r.merge(*c)
		}
		if o.Progress != nil {
			o.Progress(c, i+1, len(o.Work))
		}
	}
	return r, nil
}

// tuner is a device on which variants are timed.
type tuner struct {
	adapter *gpu.Adapter
	dev     *gpu.Device
	clock   *gpu.Buffer // for two moments of the device's clock; nil where it has none
}

// newTuner opens another device of the adapter of one.
func newTuner(ctx context.Context, dev *gpu.Device) (*tuner, error) {
	want := dev.Info()
	same := func(i gpu.AdapterInfo) bool {
		return i.Driver == want.Driver && i.Name == want.Name && i.Backend == want.Backend
	}
	found, err := gpu.Select(ctx).Where(same).Adapters()
	if err != nil {
		return nil, fail("Run", gpu.ErrUnsupported, "no adapter ", want.Name, " of driver ", want.Driver, " to open")
	}
	if !want.Features.Has(driver.FeatureWGSL) {
		return nil, fail("Run", gpu.ErrUnsupported, want.Driver, " runs no kernels")
	}
	t := &tuner{adapter: found[0]}
	if t.dev, err = t.adapter.Open(ctx); err != nil {
		return nil, err
	}
	_ = (*Results)(nil).Apply(t.dev) // as usual
	if t.dev.Info().Features.Has(driver.FeatureTimestamps) && t.dev.Info().Limits.TimestampPeriod > 0 {
		t.clock, err = t.dev.NewBuffer(16)
	}
	return t, err
}

// force makes expressions on a device use a variant.
func force(dev *gpu.Device, tuned *kernels.Tuned) {
	exec.Of(dev).Tune(func(info *plan.Device) {
		if info.Tuned = nil; tuned != nil {
			info.Tuned = tuned
		}
	})
}

func only(class kernels.Class, name string) *kernels.Tuned {
	return &kernels.Tuned{Answers: []kernels.Answer{{Class: class, Best: name}}}
}

// offer is the variants that there are for some work.
type offer struct {
	class kernels.Class
	names []string
	usual string
}

// offered finds out which variants there are. ok tells that there are several.
func (t *tuner) offered(ctx context.Context, w *Work, b *bench) (o offer, ok bool, err error) {
	asked := func(c kernels.Class, names []string, usual string) {
		if o.names == nil && kernels.Families[c.Family] == w.Family {
			o = offer{c, names, usual}
		}
	}
	force(t.dev, &kernels.Tuned{Asked: asked})
	_, err = b.expr.Explain(ctx)
	force(t.dev, nil)
	return o, len(o.names) > 1 && slices.Contains(o.names, o.usual), err
}

// choose times the variants for some work. It returns nil where there is nothing to choose.
func (t *tuner) choose(ctx context.Context, w *Work, rounds int) (*Choice, error) {
	b, err := w.build(t.dev)
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.close() }()
	o, ok, err := t.offered(ctx, w, b)
	if err != nil || !ok {
		return nil, err
	}
	c := &Choice{Family: w.Family, DType: o.class.Type.String(), Layout: o.class.Layout, Log2: o.class.Log, Shape: w.String(), Usual: o.usual}
	if err := t.trial(ctx, b, &o, c); err != nil {
		return nil, err
	}
	usual := c.timing(o.usual)
	var list []*Timing
	for i := range c.Timings {
		if v := &c.Timings[i]; v == usual || !v.Wrong && slices.Min(v.Runs) <= slow*slices.Min(usual.Runs) {
			list = append(list, v)
		}
	}
	if err := t.rounds(ctx, b, &o, list, rounds); err != nil {
		return nil, err
	}
	if list = fastest(list, usual); len(list) == 0 {
		return c, nil
	}
	list = append(list, usual)
	if err := t.rounds(ctx, b, &o, list, rounds+trials); err != nil {
		return nil, err
	}
	if err := t.begin(ctx, w, &o, list); err != nil {
		return nil, err
	}
	c.Best, _ = c.decide()
	return c, nil
}

// fastest returns those that are clearly faster than the usual one, a few at most.
func fastest(list []*Timing, usual *Timing) (few []*Timing) {
	for len(few) < contenders {
		best, limit := (*Timing)(nil), faster*usual.quartile()
		for _, v := range list {
			if q := v.quartile(); v != usual && q <= limit && !slices.Contains(few, v) {
				best, limit = v, q
			}
		}
		if best == nil {
			break
		}
		few = append(few, best)
	}
	return few
}

// rounds times variants by turns, the last one being as good as any to tell how many calls a timing takes.
func (t *tuner) rounds(ctx context.Context, b *bench, o *offer, list []*Timing, rounds int) error {
	calls := int(min(max(float64(leastTime)/list[len(list)-1].quartile(), 1), mostCalls))
	for range rounds {
		for _, v := range list {
			force(t.dev, only(o.class, v.Variant))
			ns, err := t.timed(ctx, b, calls)
			if err != nil {
				return err
			}
			v.Runs = append(v.Runs, ns)
		}
	}
	return nil
}

// trial runs each variant, the usual one first, compares the results and times it. One that fails is left out, unless the usual one
// does.
func (t *tuner) trial(ctx context.Context, b *bench, o *offer, c *Choice) error {
	names := append([]string{o.usual}, slices.DeleteFunc(slices.Clone(o.names), func(s string) bool { return s == o.usual })...)
	var want []float32
	for i, name := range names {
		v := Timing{Variant: name}
		force(t.dev, only(o.class, name))
		err := b.dst.AssignContext(ctx, b.expr)
		var got []float32
		if err == nil {
			got, err = elements(ctx, b.dst)
		}
		for range trials {
			if err == nil {
				var ns int64
				ns, err = t.timed(ctx, b, 1)
				v.Runs = append(v.Runs, ns)
			}
		}
		switch {
		case err != nil && (i == 0 || ctx.Err() != nil || t.dev.Usable() != nil):
			return err
		case err != nil:
			continue
		case i == 0:
			want = got
		default:
			v.Wrong = !near(got, want)
		}
		c.Timings = append(c.Timings, v)
	}
	return nil
}

// near reports whether results are the same, but for rounding.
func near(got, want []float32) bool {
	var far, size float64
	for i, v := range want {
		d := math.Abs(float64(got[i]) - float64(v))
		if math.IsNaN(d) {
			return false
		}
		far, size = max(far, d), max(size, math.Abs(float64(v)))
	}
	return far <= tolerance*size
}

// timed computes the expression and returns the nanoseconds of a call. A call before them plans it.
func (t *tuner) timed(ctx context.Context, b *bench, calls int) (int64, error) {
	if err := b.dst.AssignContext(ctx, b.expr); err != nil {
		return 0, err
	}
	if err := t.dev.Sync(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	err := t.stamp(0)
	for range calls {
		if err == nil {
			err = b.dst.AssignContext(ctx, b.expr)
		}
	}
	if err = errors.Join(err, t.stamp(8)); err == nil {
		err = t.dev.Sync(ctx)
	}
	ns := time.Since(start).Nanoseconds()
	if err == nil && t.clock != nil {
		var on int64
		if on, err = t.elapsed(ctx); on > 0 {
			ns = on
		}
	}
	return max(ns/int64(calls), 1), err
}

// stamp queues the device's clock.
func (t *tuner) stamp(at uint64) error {
	if t.clock == nil {
		return nil
	}
	return t.clock.Timestamp(at)
}

// elapsed is the nanoseconds between the two moments.
func (t *tuner) elapsed(ctx context.Context) (int64, error) {
	var b [16]byte
	if err := t.clock.Read(ctx, gpu.Transfer{Host: gpu.HostBytes(b[:]), Width: len(b), Count: 1}); err != nil {
		return 0, err
	}
	ticks := int64(binary.LittleEndian.Uint64(b[8:]) - binary.LittleEndian.Uint64(b[:]))
	return int64(float64(ticks) * float64(t.dev.Info().Limits.TimestampPeriod)), nil
}

// begin times the first calls of the usual variant and of those that may take its place, each on devices of their own: they compile.
func (t *tuner) begin(ctx context.Context, w *Work, o *offer, list []*Timing) error {
	for range firsts {
		for _, v := range list {
			ns, err := t.first(ctx, w, only(o.class, v.Variant))
			if err != nil {
				return err
			}
			if v.First == 0 || ns < v.First {
				v.First = ns
			}
		}
	}
	return nil
}

// first returns the nanoseconds of the first call on a device.
func (t *tuner) first(ctx context.Context, w *Work, tuned *kernels.Tuned) (ns int64, err error) {
	dev, err := t.adapter.Open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	_ = (*Results)(nil).Apply(dev) // as usual
	b, err := w.build(dev)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err = dev.Sync(ctx); err != nil {
		return 0, err
	}
	force(dev, tuned)
	start := time.Now()
	if err = b.dst.AssignContext(ctx, b.expr); err == nil {
		err = dev.Sync(ctx)
	}
	return time.Since(start).Nanoseconds(), err
}
