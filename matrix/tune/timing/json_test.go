// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
)

// oddName has every kind of character that JSON writes in a way of its own.
const oddName = "a\"b\\c/\x00\x1f\t\n é世\U0001F600 \u2028"

func sample() (*Results, gpu.AdapterInfo) {
	i := gpu.AdapterInfo{Driver: "simd", Name: oddName, Vendor: "v", Backend: "wasm"}
	i.Limits.MaxInvocations = math.MaxUint32
	r := Fresh(i)
	for _, n := range []uint8{9, 3, 7} {
		r.merge(Choice{Family: "softmax", DType: "float32", Log2: [3]uint8{n, 10, 0}, Shape: "softmax:64x1024", Usual: "rows 16", Timings: []Timing{
			{Variant: "rows 16", First: 100, Runs: []int64{100, 100, 100}}, {Variant: oddName, Runs: []int64{1, mostTime, 3}, Wrong: true}, {Variant: "none"},
		}})
	}
	r.merge(Choice{Family: "grid", DType: "float32", Layout: 0, Usual: "x"})
	return r, i
}

// TestJSON wants what this package writes and reads to be what encoding/json does.
func TestJSON(t *testing.T) {
	r, i := sample()
	if len(r.Choices) != 4 || r.Choices[0].Family != "grid" || r.Choices[1].Log2[0] != 3 || r.Choices[3].Log2[0] != 9 {
		t.Errorf("merged in the order %+v", r.Choices)
	}
	r.merge(r.Choices[2])
	if len(r.Choices) != 4 {
		t.Error("a choice of the same class was added")
	}
	theirs := new(Results)
	if err := json.Unmarshal([]byte(r.Text()), theirs); err != nil {
		t.Fatal(err)
	}
	same := func(what string, got *Results) {
		t.Helper()
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(r)
		if normal := strings.ReplaceAll; normal(string(a), "null", "[]") != normal(string(b), "null", "[]") {
			t.Errorf("%s: %s, want %s", what, a, b)
		}
	}
	same("written", theirs)
	compact, err := json.Marshal(theirs)
	if err != nil {
		t.Fatal(err)
	}
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, compact, "\r", " \t"); err != nil {
		t.Fatal(err)
	}
	more := strings.Replace(string(compact), "{", `{"more":[1.5e3,null,{"a":[true,{}],"b":"\ud83d\ude00\ud83d"}],`, 1)
	for what, text := range map[string]string{"their text": string(compact), "with spaces": " " + spaced.String() + "\n", "with more": more} {
		got, err := Parse(text, i)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		same(what, got)
	}
}

// TestBadJSON cuts a text at every byte and puts mistakes into it.
func TestBadJSON(t *testing.T) {
	r, i := sample()
	text := r.Text()
	for n := range text {
		if _, err := Parse(text[:n], i); !errors.Is(err, gpu.ErrInvalid) {
			t.Fatalf("the first %d bytes are %v", n, err)
		}
	}
	for _, c := range [][2]string{
		{`"version":1,`, ``},
		{`"version":1`, `"version":0`},
		{`"version":1`, `"version":1.5`},
		{`"version":1`, `"version":"1"`},
		{`"version":1`, `"version":`},
		{`"version":1`, `"version":99999999999999999999`},
		{`"layout":0`, `"layout":256`},
		{`"layout":0`, `"layout":-1`},
		{`"off":false`, `"off":0`},
		{`"off":false`, `"off":null`},
		{`"choices":[`, `"choices":[,`},
		{`"choices":[`, `"choices":{`},
		{`"driver":"`, `"driver":"\x`},
		{`"driver":"`, `"driver":"\u12`},
		{`"driver":"`, "\"driver\":\"\n"},
		{`"driver":`, `"driver"`},
		{`{"version"`, `{version`},
		{`,"off"`, ` "off"`},
		{`"off"`, `"x":` + strings.Repeat("[", 1000) + `,"off"`},
		{`"kernels"`, `"x":,"kernels"`},
	} {
		changed := strings.Replace(text, c[0], c[1], 1)
		if changed == text {
			t.Fatalf("no %s in %s", c[0], text)
		}
		if _, err := Parse(changed, i); !errors.Is(err, gpu.ErrInvalid) {
			t.Errorf("%s is %v", c[1], err)
		}
	}
	if _, err := Parse(text+"x", i); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("with more behind it it is %v", err)
	}
}

// FuzzParse reads texts of strangers.
func FuzzParse(f *testing.F) {
	r, i := sample()
	f.Add(r.Text())
	f.Add(`{"version":1,"x":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text, i)
		if err != nil {
			if !errors.Is(err, gpu.ErrInvalid) && !errors.Is(err, gpu.ErrUnsupported) {
				t.Error(err)
			}
			return
		}
		again, err := Parse(r.Text(), i)
		if err != nil || !reflect.DeepEqual(again.Adapter, r.Adapter) || len(again.Choices) != len(r.Choices) {
			t.Errorf("%+v, %v after %+v", again, err, r)
		}
	})
}
