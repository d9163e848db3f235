// SPDX-License-Identifier: Apache-2.0

// Package timing times the variants of Sublet's kernels on an adapter, reads and writes the results as JSON, and has package matrix use
// the fastest. Package tune keeps the results in files, and the npm package in the database of a browser.
package timing

import (
	"math"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// version is that of the results, and the most bytes, choices, variants and runs that they may have.
const (
	version     = 1
	mostBytes   = 4 << 20
	mostChoices = 1000
	mostOthers  = 100
	mostTime    = int64(1e13) // ns
	mostName    = 200
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
	// Sorting would be code that programs for pages have no other use for.
	for _, v := range runs {
		below, equal := 0, 0
		for _, u := range runs {
			if u < v {
				below++
			} else if u == v {
				equal++
			}
		}
		if k := (len(runs) - 1) / 4; below <= k && k < below+equal {
			return float64(v)
		}
	}
	return math.Inf(1) // never
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
	for i := range c.Timings {
		if c.Timings[i].Variant == variant {
			return &c.Timings[i]
		}
	}
	return nil
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
	case kernels.Families[kernels.FamilyLinear], kernels.Families[kernels.FamilyBlock], kernels.Families[kernels.FamilySparse]:
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
func disabled() bool {
	value, _ := syscall.Getenv("SUBLET_TUNE")
	return strings.EqualFold(value, "off")
}

// state is the tuning state of a device.
type state struct {
	mu      sync.Mutex
	decided bool
	err     error
}

type stateKey struct{}

func stateOf(dev *gpu.Device) *state {
	return dev.Attach(stateKey{}, func() any { return new(state) }).(*state)
}

// Use makes expressions on a device use the results that load returns, unless it uses others already, or tuning is off. Results that cannot
// be loaded are reported in the device's log, and the error is returned each time.
func Use(dev *gpu.Device, load func() (*Results, error)) error {
	s := stateOf(dev)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.decided || disabled() || dev.Info().Driver == "" {
		return s.err
	}
	s.decided = true
	r, err := load()
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
	if err := dev.Usable(); err != nil {
		return err
	}
	if r != nil {
		if err := r.Check(dev.Info()); err != nil {
			return err
		}
	}
	s := stateOf(dev)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decided, s.err = true, nil
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

// Describe is the adapter as files know it.
func Describe(i gpu.AdapterInfo) Adapter {
	return Adapter{i.Driver, i.Name, i.Vendor, i.Backend, i.Kind.String(), i.Limits.MaxInvocations, i.Limits.MaxWorkgroupMemory}
}

// merge replaces the choice of the same class, or inserts a new one.
func (r *Results) merge(c Choice) {
	key, i := c.key(), 0
	for i < len(r.Choices) && r.Choices[i].key() < key {
		i++
	}
	if i < len(r.Choices) && r.Choices[i].key() == key {
		r.Choices[i] = c
		return
	}
	r.Choices = append(r.Choices, c)
	copy(r.Choices[i+1:], r.Choices[i:])
	r.Choices[i] = c
}

// key is what choices of one class have in common.
func (c *Choice) key() string {
	return c.Family + " " + c.DType + " " + string([]byte{c.Layout, c.Log2[0], c.Log2[1], c.Log2[2]})
}

// fail makes an error of package tune, whose functions users call.
func fail(op string, err error, detail ...any) error {
	return fault.Fail("tune: "+op, err, fault.Text(detail...))
}

// Fresh is results without timings.
func Fresh(i gpu.AdapterInfo) *Results {
	return &Results{Version: version, Kernels: kernels.Checksum(), Adapter: Describe(i), Choices: []Choice{}}
}

// Check tells why the results are not for an adapter.
func (r *Results) Check(i gpu.AdapterInfo) error {
	const op = "Read"
	want := Describe(i)
	switch {
	case r == nil || r.Version <= 0:
		return fail(op, gpu.ErrInvalid, "no timings: they have no version")
	case r.Version != version:
		return fail(op, gpu.ErrUnsupported, "timings of version ", r.Version, ", not ", version)
	case r.Adapter != want:
		return fail(op, gpu.ErrUnsupported, "timings of ", fault.Short(r.Adapter.Name), " by ", fault.Short(r.Adapter.Driver), ", not of ", want.Name, " by ", want.Driver)
	case r.Kernels != kernels.Checksum():
		return fail(op, gpu.ErrUnsupported, "timings of other kernels; sublet tune times these")
	case len(r.Choices) > mostChoices:
		return fail(op, gpu.ErrInvalid, len(r.Choices), " choices, the most are ", mostChoices)
	}
	for k := range r.Choices {
		if c := &r.Choices[k]; !c.valid() {
			return fail(op, gpu.ErrInvalid, "choice ", k, " has no known family and type, or impossible timings")
		}
	}
	return nil
}

// valid reports whether a choice can be that of a tuner.
func (c *Choice) valid() bool {
	_, ok := c.class()
	names := []string{c.Shape, c.Usual, c.Best}
	for i := range c.Timings {
		t := &c.Timings[i]
		names = append(names, t.Variant)
		impossible := func(ns int64) bool { return ns <= 0 || ns > mostTime }
		if len(t.Runs) > mostOthers || t.First < 0 || t.First > mostTime || slices.ContainsFunc(t.Runs, impossible) {
			return false
		}
	}
	return ok && len(c.Timings) <= mostOthers && !slices.ContainsFunc(names, func(s string) bool { return len(s) > mostName })
}
