// SPDX-License-Identifier: Apache-2.0

// Package tune times the variants of Sublet's kernels on an adapter and has package matrix use the fastest.
//
// A program that imports it uses the results of earlier timings by the command sublet tune or by [Run]:
//
//	import _ "github.com/sublet-gpu/sublet/matrix/tune"
//
// The timings are in a file for each adapter in the user's cache folder; see [Path]. It is read in the background when a device is first
// used; until then the default variants are used, so that nothing waits. [Use] reads it at once. A file that is damaged, or of another
// adapter or other kernels, is ignored with a message in the device's log. SUBLET_TUNE=off ignores all files.
//
// A variant replaces the default if it is clearly faster: by a twentieth in the lower quartile of its timings. Results stay within the
// tolerances of package matrix; their last bits may differ, since sums are computed in another order.
package tune

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// Results are the timings of an adapter, as they are in its file.
type Results struct {
	Version int      `json:"version"`
	Kernels string   `json:"kernels"` // tells the kernels that were timed from those of other versions
	Adapter Adapter  `json:"adapter"`
	Off     bool     `json:"off"` // they are kept, but not used
	Choices []Choice `json:"choices"`
}

// Adapter has the properties of an adapter on which timings depend.
type Adapter struct {
	Driver         string `json:"driver"`
	Name           string `json:"name"`
	Vendor         string `json:"vendor"`
	Backend        string `json:"backend"`
	Kind           string `json:"kind"`
	MaxInvocations uint32 `json:"max_invocations"`
	MaxMemory      uint32 `json:"max_workgroup_memory"`
}

// Choice has the timings of a family's variants for operands of one type, one layout and sizes between the same powers of two.
type Choice struct {
	Family string `json:"family"`
	DType  string `json:"dtype"`
	Layout uint8  `json:"layout"` // of products: 1 where the left factor is stored by columns, plus 2 where the right one is
	// Log2 is the binary logarithms of the sizes, rounded up: rows and columns, of products those of the result and the inner size.
	Log2    [3]uint8 `json:"log2"`
	Shape   string   `json:"shape"` // what was timed
	Usual   string   `json:"usual"` // the variant that is used without timings
	Best    string   `json:"best"`  // the one that is used; what is read from files is found out anew
	Timings []Timing `json:"timings"`
}

// Timing has the measurements of a variant.
type Timing struct {
	Variant string  `json:"variant"`
	First   int64   `json:"first_ns"` // of the first call, with the compilation; 0 if that was of no interest
	Runs    []int64 `json:"ns"`       // of later ones, one for each round
	Wrong   bool    `json:"wrong"`    // its results were not those of the usual variant
}

// faster is how much of the usual time a variant may take to be used, and later how much more its first call.
const (
	faster = 0.95
	later  = 1.05
)

// quartile is the lower quartile of the runs.
func (t *Timing) quartile() float64 {
	if t.Wrong {
		return math.Inf(1)
	}
	return quartile(t.Runs)
}

func quartile(runs []int64) float64 {
	if len(runs) == 0 {
		return math.Inf(1)
	}
	sorted := slices.Sorted(slices.Values(runs))
	return float64(sorted[(len(sorted)-1)/4])
}

// beats reports whether a variant is clearly faster than another, over all rounds and also over the later ones. In the later rounds only
// variants take part that were faster before: of dozens of equal ones some would be faster once by chance.
func (t *Timing) beats(u *Timing) bool {
	half := len(t.Runs) / 2
	return !t.Wrong && half > 0 && len(t.Runs) == len(u.Runs) && quartile(t.Runs) <= faster*quartile(u.Runs) && quartile(t.Runs[half:]) <= faster*quartile(u.Runs[half:])
}

// Quartile is the lower quartile of a variant's timings in nanoseconds, infinite where it has none or is wrong.
func (c *Choice) Quartile(variant string) float64 {
	if c == nil || c.timing(variant) == nil {
		return math.Inf(1)
	}
	return c.timing(variant).quartile()
}

// timing finds the timing of a variant.
func (c *Choice) timing(variant string) *Timing {
	i := slices.IndexFunc(c.Timings, func(t Timing) bool { return t.Variant == variant })
	if i < 0 {
		return nil
	}
	return &c.Timings[i]
}

// decide returns the variant that is clearly faster than the usual one, "" if there is none, and the one that is used until it is
// compiled, "" if it is worth waiting for: no first call takes longer than it would as usual.
func (c *Choice) decide() (best, sooner string) {
	usual := c.timing(c.Usual)
	if usual == nil || usual.Wrong || len(usual.Runs) == 0 {
		return "", ""
	}
	limit := usual.quartile()
	for i := range c.Timings {
		t := &c.Timings[i]
		if t == usual || !t.beats(usual) || t.quartile() > limit || t.First == 0 {
			continue
		}
		instead := ""
		if float64(t.First) > later*float64(usual.First) {
			if !c.replaces(t.Variant) {
				continue
			}
			instead = c.Usual
		}
		best, sooner, limit = t.Variant, instead, t.quartile()
	}
	return best, sooner
}

// replaces reports whether the usual variant can be launched in the place of another: it leaves the same partial results.
func (c *Choice) replaces(variant string) bool {
	switch c.Family {
	case kernels.Families[kernels.FamilyLinear], kernels.Families[kernels.FamilyBlock]:
		return true
	}
	return parts(variant) != "" && parts(variant) == parts(c.Usual)
}

// parts is the part of a product's name that says in how many parts it is computed.
func parts(name string) string {
	_, n, _ := strings.Cut(name, kernels.PartsMark)
	return n
}

// class is what the planner calls it; not ok where there is no such family or type.
func (c *Choice) class() (k kernels.Class, ok bool) {
	family := slices.Index(kernels.Families[:], c.Family)
	k = kernels.Class{Family: kernels.Family(max(family, 0)), Layout: c.Layout, Log: c.Log2}
	for k.Type = 0; k.Type < fuse.Types; k.Type++ {
		if k.Type.String() == c.DType {
			return k, family >= 0
		}
	}
	return k, false
}

// tuned has the choices in the form that the planner uses.
func (r *Results) tuned() *kernels.Tuned {
	t := &kernels.Tuned{}
	for i := range r.Choices {
		c := &r.Choices[i]
		if class, ok := c.class(); ok {
			best, sooner := c.decide()
			t.Answers = append(t.Answers, kernels.Answer{Class: class, Best: best, Sooner: sooner})
		}
	}
	return t
}

// Other counts the choices for which another variant than the usual one is used.
func (r *Results) Other() (n int) {
	if r == nil || r.Off {
		return 0
	}
	for i := range r.Choices {
		if best, _ := r.Choices[i].decide(); best != "" {
			n++
		}
	}
	return n
}

// disabled reports whether the environment switches tuning off.
func disabled() bool { return strings.EqualFold(os.Getenv("SUBLET_TUNE"), "off") }

// state is the tuning state of a device.
type state struct {
	mu   sync.Mutex
	read bool
	err  error
}

type stateKey struct{}

func init() {
	exec.Began = func(dev *gpu.Device) { _ = Use(dev) } // which logs it
}

// Use reads the file of a device's adapter and makes expressions on the device use the fastest variants. Without this call that happens in
// the background when the device is first used. If there is no file it does nothing. A file that does not fit is ignored, and the error
// says why: [gpu.ErrInvalid] if it is no file of timings, [gpu.ErrUnsupported] if it is of another adapter or of other kernels.
func Use(dev *gpu.Device) error {
	s := dev.Attach(stateKey{}, func() any { return new(state) }).(*state)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read || disabled() || dev.Info().Driver == "" {
		return s.err
	}
	s.read = true
	r, err := Load(dev.Info())
	if err != nil {
		if log := dev.Logger(); log != nil {
			log.Warn("sublet: timings of kernels ignored", "why", err.Error())
		}
		s.err = err
		return err
	}
	r.apply(dev)
	return nil
}

// Apply makes expressions on a device use the fastest variants. nil results restore the default variants. Results of another adapter are
// [gpu.ErrUnsupported].
func (r *Results) Apply(dev *gpu.Device) error {
	if r != nil {
		if err := r.check(dev.Info()); err != nil {
			return err
		}
	}
	s := dev.Attach(stateKey{}, func() any { return new(state) }).(*state)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read, s.err = true, nil
	r.apply(dev)
	return nil
}

func (r *Results) apply(dev *gpu.Device) {
	exec.Of(dev).Tune(func(info *plan.Device) {
		if info.Tuned = nil; r != nil && !r.Off && len(r.Choices) > 0 && !disabled() {
			info.Tuned = r.tuned()
		}
	})
}

// describe is the adapter as files know it.
func describe(i gpu.AdapterInfo) Adapter {
	return Adapter{i.Driver, i.Name, i.Vendor, i.Backend, i.Kind.String(), i.Limits.MaxInvocations, i.Limits.MaxWorkgroupMemory}
}

// merge replaces the choice of the same class, or appends a new one.
func (r *Results) merge(c Choice) {
	same := func(o Choice) bool {
		return o.Family == c.Family && o.DType == c.DType && o.Layout == c.Layout && o.Log2 == c.Log2
	}
	if i := slices.IndexFunc(r.Choices, same); i >= 0 {
		r.Choices[i] = c
		return
	}
	r.Choices = append(r.Choices, c)
	slices.SortStableFunc(r.Choices, func(x, y Choice) int {
		return cmp.Or(cmp.Compare(x.Family, y.Family), cmp.Compare(x.DType, y.DType), cmp.Compare(x.Layout, y.Layout), slices.Compare(x.Log2[:], y.Log2[:]))
	})
}

func fail(op string, err error, detail ...any) error {
	return fault.Fail("tune: "+op, err, fault.Text(detail...))
}
