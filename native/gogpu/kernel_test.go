// SPDX-License-Identifier: Apache-2.0

package gogpu

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
)

const head = "@group(0) @binding(0) var<storage, read_write> v: array<u32>;\n"

// run computes on 8, 9, 10, 11.
func run(t *testing.T, dev driver.Device, source string) (words []byte, err error) {
	t.Helper()
	k := &driver.Kernel{Source: head + source, Entry: "main", Layout: driver.NewLayout(driver.AccessReadWrite)}
	if err := dev.NewKernel(t.Context(), 1, k); err != nil {
		return nil, err
	}
	defer dev.FreeKernel(1)
	check(t, dev.NewBuffer(1, 16, false))
	defer dev.FreeBuffer(1)
	var l driver.CommandList
	l.Write(1, 0, driver.HostBytes(gputest.PutU32(nil, 8, 9, 10, 11)))
	l.Bind(1, k.Layout, []driver.Binding{{Buffer: 1, Size: 16}})
	l.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil)
	l.Unbind(1)
	check(t, dev.Submit(&l))
	words = make([]byte, 16)
	check(t, dev.Read(t.Context(), driver.Transfer{Buffer: 1, Host: driver.HostBytes(words), Width: 16, Count: 1}))
	return words, nil
}

// TestKernels runs what the library's compiler does not understand, or mistakes for something else, without the driver's help.
func TestKernels(t *testing.T) {
	dev, err := openFirst(t.Context())
	check(t, err)
	defer func() { check(t, dev.Close()) }()
	const main = "@compute @workgroup_size(1) fn main() {\n"
	for name, c := range map[string]struct {
		source string
		want   [4]uint32
	}{
		"a function with the name of a builtin one": {
			"fn length(x: u32) -> u32 { return x + 1u; }\n" + main + "v[0] = length(v[0]); }", [4]uint32{9, 9, 10, 11},
		},
		"functions that stand behind their callers": {
			main + "v[0] = f(v[0]); }\nfn f(x: u32) -> u32 { return g(x) * h(x); }\nfn h(x: u32) -> u32 { return g(x) + 1u; }\n" +
				"fn g(x: u32) -> u32 { return x + 2u; }", [4]uint32{110, 9, 10, 11},
		},
		"aliases of types": {
			"alias T = f32; alias U = T;\n" + main + "v[0] = u32(bitcast<U>(1077936128u)); let b = bitcast<vec2<T>>(vec2u(1077936128u, 1082130432u));\n" +
				"v[1] = u32(b.x + b.y); v[2] = u32(bitcast<vec2f>(vec2u(1077936128u)).y); }", [4]uint32{3, 7, 3, 11},
		},
		"all and any": {
			main + "let a = vec4u(v[0], v[1], v[2], v[3]);\nv[0] = u32(all(a > vec4u(7u))); v[1] = u32(all(a > vec4u(8u)));\n" +
				"v[2] = u32(any(a.xyz > vec3u(9u))); v[3] = u32(any(a.xy > vec2u(9u))) + 2u * u32(any(a.x == 8u)); }", [4]uint32{1, 0, 1, 2},
		},
		"abs of unsigned numbers": {
			main + "v[0] = abs(v[0] - 9u); v[1] = abs(vec2u(v[0], v[1])).x; }", [4]uint32{1<<32 - 1, 1<<32 - 1, 10, 11},
		},
		"indices beyond the end of a buffer": {
			main + "for (var i = 4u; i < 1000000000u; i += 99999999u) { v[i] = 1u; }\nv[0] = 1u; }", [4]uint32{1, 9, 10, 11},
		},
		"indices beyond the end of an array": {
			"var<workgroup> w: array<u32, 4>; var<private> p: array<u32, 4>;\n" + main + "var f = array<u32, 4>(1u, 2u, 3u, 4u); var x = vec3u(5u, 6u, 7u);\n" +
				"for (var i = 0u; i < 1000000000u; i += 99999999u) { w[i] = i; p[i] = i; f[i] += 1u; x[i] += 1u; }\n" +
				"for (var i = 3i; i > -2000000000i; i -= 99999999i) { w[i] += 1u; }\n" +
				"v[0] = w[3]; v[1] = p[v[0]]; v[2] = f[v[1]]; v[3] = x[v[2] + 100u]; }", [4]uint32{999999990 + 21, 999999990, 14, 17},
		},
	} {
		got, err := run(t, dev, c.source)
		if want := gputest.PutU32(nil, c.want[:]...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v, error %v", name, got, want, err)
		}
	}
	for name, source := range map[string]string{
		"deep brackets": main + "v[0] = " + strings.Repeat("(", 100000) + "1u" + strings.Repeat(")", 100000) + "; }",
		"a long chain":  main + "v[0] = 1u" + strings.Repeat(" + 1u", 100000) + "; }",
		"mutual calls":  "fn f(x: u32) -> u32 { return g(x); }\nfn g(x: u32) -> u32 { return f(x); }\n" + main + "v[0] = 1u; }",
		"no end":        main + "/*",
	} {
		if _, err := run(t, dev, source); !errors.Is(err, gpu.ErrCompile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
