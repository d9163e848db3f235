// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/host"
)

// AdapterInfo describes an adapter or a device.
type AdapterInfo = driver.AdapterInfo

// Adapter is a processor that can be opened with [Adapter.Open], any number of times.
type Adapter struct {
	Info AdapterInfo
	// Experimental adapters are those of a driver that is known to do some things wrong, or was tried little.
	Experimental bool

	open func(context.Context) (driver.Device, error)
}

// Open opens a device of this adapter. Of the options, those that choose an adapter have no effect.
func (a *Adapter) Open(ctx context.Context, opts ...Option) (*Device, error) {
	if a == nil || a.open == nil {
		return nil, fail("Open", ErrInvalid, "nil adapter")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	d, err := a.open(ctx)
	if err != nil {
		return nil, named("Open", err)
	}
	return newDevice(d, c, a.open), nil
}

// Option is an option of [Open].
type Option func(*config) error

type config struct {
	driver, adapter, backend string
	frugal                   bool
	handle                   any
	memory                   uint64
	largest                  uint64
	logger                   Logger
	debug                    string
	rung                     rung
}

// WithDriver chooses among the adapters of one driver: "oliver", "simd" or "cpu" natively ("cogent" or
// "rajveer" in place of "oliver" by a build tag), "browser", "simd" or "cpu" in a page, or the name of one
// that was registered. The variable SUBLET_DRIVER has the same effect where the option is absent.
func WithDriver(name string) Option {
	return func(c *config) error { c.driver = name; return nil }
}

// WithAdapter takes the first adapter whose name contains the text, in any case. The variable SUBLET_ADAPTER has the
// same effect where the option is absent.
func WithAdapter(name string) Option {
	return func(c *config) error { c.adapter = name; return nil }
}

// WithBackend takes adapters of one interface of the system only: "vulkan", "metal", "d3d12" or "opengl" natively, "webgpu" in a page,
// in any case. Otherwise a processor that several of them show is listed once, by the first in this order. The variable SUBLET_BACKEND
// has the same effect where the option is absent, and on [Adapters] and [Select].
func WithBackend(name string) Option {
	return func(c *config) error { c.backend = name; return nil }
}

// WithLowPower prefers an adapter with low power consumption to the fastest one.
func WithLowPower() Option { return func(c *config) error { c.frugal = true; return nil } }

// WithDevice wraps a device that the caller already has: a *wgpu.Device natively, a GPUDevice (js.Value) in a page.
// Buffers made elsewhere on that device can then be wrapped. Closing the result does not close the caller's device. Natively, calls also
// wait for work that the caller has submitted before, until their contexts end. They wait without regard to their contexts for
// compilations and for work that the caller submits during the call.
//
// A [driver.Device] of the caller's own driver is used as it is; closing the result closes it.
func WithDevice(handle any) Option {
	return func(c *config) error {
		if handle == nil {
			return fail("Open", ErrInvalid, "nil device")
		}
		c.handle = handle
		return nil
	}
}

// WithMemory limits how many bytes of buffers there may be at once, in use and kept for reuse; more is [ErrNoMemory]. 0 is no limit.
// Wrapped Go memory of more than a quarter of it is used in ranges, as is memory larger than a buffer.
func WithMemory(bytes uint64) Option {
	return func(c *config) error { c.memory = bytes; return nil }
}

// WithMaxBuffer lowers the size of the largest buffer and of the largest binding, so that programs can test their use of larger memory.
// 0 leaves both as they are; other values must be multiples of 256.
func WithMaxBuffer(bytes uint64) Option {
	return func(c *config) error {
		if bytes%256 != 0 {
			return fail("Open", ErrInvalid, bytes, " bytes")
		}
		c.largest = bytes
		return nil
	}
}

func newConfig(opts []Option) (*config, error) {
	c := new(config)
	for _, o := range opts {
		if o == nil {
			return nil, fail("Open", ErrInvalid, "nil option")
		}
		if err := o(c); err != nil {
			return nil, err
		}
	}
	return c, c.settleLog()
}

// Drivers lists the names of the drivers that are linked or registered, in order of preference.
func Drivers() []string {
	var names []string
	for _, d := range linked() {
		names = append(names, d.Name)
	}
	return names
}

// Rank returns the adapter's place in Open's order of preference, from 1 on, and the reason. Of adapters of one rank Open takes the first.
func (a *Adapter) Rank() (rank int, why string) {
	if a == nil {
		return 0, ""
	}
	return a.trust(), [...]string{
		1: "a GPU", 2: "computes on the CPU itself, faster than software adapters", 3: "a software adapter", 4: "experimental",
		5: "the oracle: one thread of Go, the library's own kernels only",
	}[a.trust()]
}

func (a *Adapter) trust() int {
	switch {
	case !a.Info.Features.Has(driver.FeatureWGSL): // the oracle
		return 5
	case a.Experimental:
		return 4
	case a.Info.Kind != driver.KindCPU:
		return 1
	case a.Info.Driver == own:
		return 2
	}
	return 3
}

// own is the name of the driver that Open prefers to software adapters of the system, which are several times slower.
const own = "simd"

// Adapters lists every adapter of every driver, best first within a driver, experimental ones too. A driver that fails yields its
// error, and the listing goes on. On big-endian machines it yields [ErrUnsupported] alone, which Open returns.
func Adapters(ctx context.Context) iter.Seq2[*Adapter, error] {
	return adapters(ctx, getenv("SUBLET_BACKEND"))
}

// adapters is [Adapters] for one backend, or for all with "".
func adapters(ctx context.Context, backend string) iter.Seq2[*Adapter, error] {
	return func(yield func(*Adapter, error) bool) {
		if err := host.CheckOrder("gpu: Adapters"); err != nil {
			yield(nil, err)
			return
		}
		for _, d := range linked() {
			as, err := ofBackend(ctx, d, backend)
			if err != nil && !yield(nil, err) {
				return
			}
			for _, a := range as {
				if !yield(&Adapter{a.Info, d.Experimental, a.Open}, nil) {
					return
				}
			}
		}
	}
}

func ofBackend(ctx context.Context, d driver.Driver, backend string) ([]driver.Adapter, error) {
	backend = strings.ToLower(backend)
	if backend != "" && d.OfBackend != nil {
		return d.OfBackend(ctx, backend)
	}
	as, err := d.Adapters(ctx)
	if backend != "" {
		as = slices.DeleteFunc(slices.Clone(as), func(a driver.Adapter) bool { return strings.ToLower(a.Info.Backend) != backend })
	}
	return as, err
}

// Open opens the best adapter that fits the options: a GPU, then the driver "simd", which computes on the CPU, then software adapters of
// the system or the browser (llvmpipe, SwiftShader), and the Go oracle (driver "cpu") where there is nothing else. An experimental
// adapter is used only if there is nothing else but the oracle, or if its driver is asked for by name; see [Adapter.Rank]. Close the
// device when done.
func Open(ctx context.Context, opts ...Option) (*Device, error) {
	const op = "Open"
	c, err := newConfig(opts)
	if err = cmp.Or(err, host.CheckOrder("gpu: "+op), fault.Ended(ctx, "gpu: "+op)); err != nil {
		return nil, err
	}
	if c.handle != nil {
		d, err := adopt(ctx, c.driver, c.handle)
		if err != nil {
			return nil, named(op, err)
		}
		return newDevice(d, c, nil), nil
	}
	s := selectBackend(ctx, cmp.Or(c.backend, getenv("SUBLET_BACKEND")))
	if name := cmp.Or(c.driver, getenv("SUBLET_DRIVER")); name != "" {
		s = s.Driver(name)
	}
	list, err := s.Name(cmp.Or(c.adapter, getenv("SUBLET_ADAPTER"))).adapters(op)
	if err != nil {
		return nil, err
	}
	best := list[0] // each driver lists its best first
	for _, a := range list[1:] {
		frugal := c.frugal && a.Info.Kind == driver.KindIntegrated && best.Info.Kind != driver.KindIntegrated
		if a.trust() < best.trust() || frugal && a.trust() == best.trust() {
			best = a
		}
	}
	return best.Open(ctx, opts...)
}

// adopt makes a driver's device of a handle, by the driver of that name or, if it is "", any that knows the handle.
func adopt(ctx context.Context, name string, handle any) (driver.Device, error) {
	if own, ok := handle.(driver.Device); ok {
		return own, nil
	}
	for _, d := range linked() {
		if name != "" && d.Name != name {
			continue
		}
		if dev, err := d.Adopt(ctx, handle); err == nil || !errors.Is(err, ErrUnsupported) {
			return dev, err
		}
	}
	return nil, fail("Open", ErrUnsupported, "no driver knows such a device")
}

// getenv is os.Getenv without package os, which would be a tenth of the program in a page.
func getenv(name string) string {
	v, _ := syscall.Getenv(name)
	return v
}

// Selection is a list of adapters in an order. Its methods return others and leave it as it is, so calls chain:
//
//	devices, err := gpu.Select(ctx).Kernels().Rank(ctx, nil).Best(2).Open(ctx)
//
// A selection carries its first error, which [Selection.Adapters] and [Selection.Open] return. If no adapter is left that is
// [ErrNoAdapter], which lists the adapters there were, unless Plus joins the selection to another.
type Selection struct {
	list []*Adapter
	all  []*Adapter // what it began with
	errs []error    // of drivers and measurements that failed
	err  error
	want string // the driver and the name that were asked for
}

// Select selects every adapter of every driver, in the order of [Adapters]: best first within a driver.
func Select(ctx context.Context) Selection { return selectBackend(ctx, getenv("SUBLET_BACKEND")) }

func selectBackend(ctx context.Context, backend string) Selection {
	if ctx == nil {
		return Selection{}.mistake("Select", ErrInvalid, "nil context")
	}
	s := Selection{err: named("Select", ctx.Err())}
	if backend != "" {
		s.want = " backend " + strconv.Quote(backend)
	}
	for a, err := range adapters(ctx, backend) {
		if err != nil {
			s.errs = append(s.errs, err)
			continue
		}
		s.all = append(s.all, a)
	}
	if s.list = s.all; len(s.all) == 0 && backend != "" {
		s.all = selectBackend(ctx, "").all // what there is in its place
	}
	return s
}

// Where keeps the adapters that the function is true for: those of a vendor, of a kind, with a feature.
func (s Selection) Where(ok func(AdapterInfo) bool) Selection {
	if ok == nil {
		return s.mistake("Where", ErrInvalid, "nil function")
	}
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(a *Adapter) bool { return !ok(a.Info) })
	return s
}

// Kernels keeps the adapters that compile WGSL, which the driver "cpu" does not.
func (s Selection) Kernels() Selection {
	return s.Where(func(i AdapterInfo) bool { return i.Features.Has(driver.FeatureWGSL) })
}

// Name keeps the adapters whose name contains the text, in any case.
func (s Selection) Name(text string) Selection {
	if text != "" {
		s.want += " adapter " + strconv.Quote(text)
	}
	text = strings.ToLower(text)
	return s.Where(func(i AdapterInfo) bool { return strings.Contains(strings.ToLower(i.Name), text) })
}

// Driver keeps the adapters of the driver of this name; see [Drivers].
func (s Selection) Driver(name string) Selection {
	s.want += " driver " + strconv.Quote(name)
	return s.Where(func(i AdapterInfo) bool { return i.Driver == name })
}

// ByMemory puts the adapters with the largest buffers first. WebGPU does not say how much memory an adapter has.
func (s Selection) ByMemory() Selection {
	s.list = slices.Clone(s.list)
	slices.SortStableFunc(s.list, func(a, b *Adapter) int {
		return cmp.Compare(b.Info.Limits.MaxBufferSize, a.Info.Limits.MaxBufferSize)
	})
	return s
}

// Best keeps the first n adapters, or all if there are fewer. A negative n is [ErrInvalid].
func (s Selection) Best(n int) Selection {
	if n < 0 {
		return s.mistake("Best", ErrInvalid, n, " adapters")
	}
	s.list = s.list[:min(n, len(s.list))]
	return s
}

// At selects the adapters with these numbers, from 0 on, in this order. One may be there several times, and is then opened as
// often. A number without an adapter is [ErrNoAdapter].
func (s Selection) At(numbers ...int) Selection {
	all := s.list
	s.list = nil
	for _, n := range numbers {
		if n < 0 || n >= len(all) {
			return s.mistake("At", ErrNoAdapter, n, "; there are: ", listing(all))
		}
		s.list = append(s.list, all[n])
	}
	return s
}

// Plus appends the adapters of another selection. What is in both is then there twice.
func (s Selection) Plus(other Selection) Selection {
	s.err = cmp.Or(s.err, other.err)
	if s.all == nil {
		s.all, s.errs = other.all, other.errs
	}
	s.list = slices.Concat(s.list, other.list)
	return s
}

// Adapters returns the adapters, of which there is at least one.
func (s Selection) Adapters() ([]*Adapter, error) { return s.adapters("Select") }

func (s Selection) adapters(op string) ([]*Adapter, error) {
	if s.err != nil {
		return nil, s.err
	}
	if len(s.list) > 0 {
		return slices.Clone(s.list), nil
	}
	why := ""
	if len(s.all) > 0 {
		why = "nothing fits" + s.want + "; there are: " + listing(s.all)
	}
	return nil, errors.Join(append([]error{fail(op, ErrNoAdapter, why)}, s.errs...)...)
}

// listing lists adapters with their numbers.
func listing(list []*Adapter) string {
	var lines []string
	for i, a := range list {
		lines = append(lines, fault.Text(i, " ", a.Info.Driver, " ", a.Info.Backend, " ", a.Info.Name))
	}
	return strings.Join(lines, "; ")
}

// Open opens a device of each adapter, in the order of the selection. Of the options, those that choose an adapter have no
// effect. If one cannot be opened, those that were are closed.
func (s Selection) Open(ctx context.Context, opts ...Option) ([]*Device, error) {
	list, err := s.Adapters()
	if err != nil {
		return nil, err
	}
	var devices []*Device
	for _, a := range list {
		d, err := a.Open(ctx, opts...)
		if err != nil {
			for _, d := range devices {
				_ = d.Close() // nothing was done with it
			}
			return nil, err
		}
		devices = append(devices, d)
	}
	return devices, nil
}

// mistake returns the selection with an error, unless it carries one already.
func (s Selection) mistake(op string, err error, detail ...any) Selection {
	s.err = cmp.Or(s.err, fail(op, err, detail...))
	s.list = nil
	return s
}

// Rank opens each adapter, measures it and puts the fastest first. bench tells the speed in any unit, more is better; nil
// counts the interactions of bodies by gravity per second. Adapters that cannot be measured are left out; the error tells
// why if none is left. It waits until the context ends at most, whose error is then the selection's.
func (s Selection) Rank(ctx context.Context, bench func(context.Context, *Device) (float64, error)) Selection {
	if s.err != nil || ctx == nil {
		return s.mistake("Rank", ErrInvalid, "nil context")
	}
	if bench == nil {
		bench = nbody
	}
	s.errs = slices.Clip(s.errs)
	speeds := map[*Adapter]float64{} // -1 for those that cannot be measured
	for _, a := range s.list {
		if _, measured := speeds[a]; measured {
			continue
		}
		v, err := measure(ctx, a, bench)
		if cerr := ctx.Err(); cerr != nil {
			s.err, s.list = cerr, nil
			return s
		}
		if err != nil {
			s.errs = append(s.errs, err)
			v = -1
		}
		speeds[a] = v
	}
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(a *Adapter) bool { return speeds[a] < 0 })
	slices.SortStableFunc(s.list, func(a, b *Adapter) int { return cmp.Compare(speeds[b], speeds[a]) })
	return s
}

func measure(ctx context.Context, a *Adapter, bench func(context.Context, *Device) (float64, error)) (float64, error) {
	d, err := a.Open(ctx)
	if err != nil {
		return 0, err
	}
	v, err := bench(ctx, d)
	err = cmp.Or(err, d.Close())
	if err == nil && !(v >= 0 && v <= math.MaxFloat64) {
		err = fail("Rank", ErrInvalid, "the speed of ", a.Info.Name, " is no number")
	}
	return v, err
}
