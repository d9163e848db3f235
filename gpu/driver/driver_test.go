// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
)

func TestLayout(t *testing.T) {
	access := []Access{AccessRead, AccessNone, AccessParams, AccessReadWrite, AccessRead}
	l := NewLayout(access...)
	for i := range MaxBindings + 3 {
		want := AccessNone
		if i < len(access) {
			want = access[i]
		}
		if got := l.At(i); got != want {
			t.Errorf("binding %d: got %d, want %d", i, got, want)
		}
	}
	if l.At(-1) != AccessNone || l.At(math.MaxInt) != AccessNone || l.At(math.MinInt) != AccessNone {
		t.Error("there are bindings out of range")
	}
	if l.Storage() != 3 || !l.HasParams() {
		t.Errorf("got %d storage bindings, parameters: %v", l.Storage(), l.HasParams())
	}
	if l := NewLayout(AccessRead); l.HasParams() || l.Storage() != 1 {
		t.Error("a layout of one storage binding has parameters")
	}
	if NewLayout() != 0 || Layout(0).Storage() != 0 {
		t.Error("the empty layout is not empty")
	}
}

func TestLayoutLimits(t *testing.T) {
	all := NewLayout(slices.Repeat([]Access{AccessReadWrite}, MaxBindings)...)
	if all.Storage() != MaxBindings || all.At(MaxBindings-1) != AccessReadWrite {
		t.Errorf("got %d bindings, want %d", all.Storage(), MaxBindings)
	}
	if more := NewLayout(slices.Repeat([]Access{AccessReadWrite}, MaxBindings+5)...); more != all {
		t.Error("more bindings than there may be change the layout")
	}
	if l := NewLayout(Access(4|1), AccessRead); l != NewLayout(AccessRead, AccessRead) {
		t.Errorf("an access that does not exist spoils its neighbour: %b", l)
	}
}

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		t    Transfer
		want int
	}{
		{Transfer{}, 0},
		{Transfer{Width: 5}, 0},
		{Transfer{Count: 5}, 0},
		{Transfer{Width: -1, Count: 1}, 0},
		{Transfer{Width: 5, Count: -1}, 0},
		{Transfer{Width: 5, Count: 1, Pitch: 100}, 5},
		{Transfer{Width: 5, Count: 3, Pitch: 8}, 21},
	} {
		if got := c.t.Span(); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.t, got, c.want)
		}
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[Kind]string{
		KindUnknown: "unknown", KindDiscrete: "discrete", KindIntegrated: "integrated", KindVirtual: "virtual", KindCPU: "cpu",
		200: "unknown",
	} {
		if got := k.String(); got != want {
			t.Errorf("kind %d: got %q, want %q", k, got, want)
		}
	}
}

func TestFeatures(t *testing.T) {
	f := FeatureMappable | FeatureDouble | FeatureWGSL
	if got, want := f.Names(), []string{"mappable", "double", "wgsl"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !f.Has(FeatureMappable|FeatureWGSL) || f.Has(FeatureMappable|FeatureHalf) || !f.Has(0) {
		t.Error("Has is not about all of the features")
	}
	if got := Features(math.MaxUint32).Names(); len(got) != 6 {
		t.Errorf("got %v, want six names", got)
	}
}

// TestCheckBindingsSizes has fewer sizes than entries.
func TestCheckBindingsSizes(t *testing.T) {
	l := Limits{MaxStorageBuffers: 8, MaxBindingSize: 1 << 20}
	err := l.CheckBindings("test", NewLayout(AccessRead), []Binding{{Buffer: 1, Size: 4}}, nil)
	if !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%v, want %v", err, fault.ErrInvalid)
	}
}
