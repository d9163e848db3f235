// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/lanes"
)

// scalarKernel is one as users write them, on scalars. Its bindings are x, which has random numbers, and r.
type scalarKernel struct {
	name, before, body string
	size               string
	groups             [3]uint32
	x, r               int // words
	kind               string
}

var scalarKernels = []scalarKernel{
	{"exp", "", "let i = id.x; if (i >= arrayLength(&r)) { return; } let v = x[i]; r[i] = exp(v) * v;", "64", [3]uint32{1024, 1, 1}, 65536, 65536, "f32"},
	{"saxpy", "", "let i = id.x; if (i >= arrayLength(&r)) { return; } r[i] = r[i] * 0.5 + x[i];", "64", [3]uint32{1024, 1, 1}, 65536, 65536, "f32"},
	{"stencil", "", "let i = id.x; if (i == 0u || i + 1u >= arrayLength(&x)) { return; } r[i] = 0.25 * x[i - 1u] + 0.5 * x[i] + 0.25 * x[i + 1u];", "64", [3]uint32{1024, 1, 1}, 65536, 65536, "f32"},
	{"stencil2d", "", `let w = 256u; if (id.x == 0u || id.y == 0u || id.x >= w - 1u || id.y >= w - 1u) { return; } let i = id.y * w + id.x;
		r[i] = 0.2 * (x[i] + x[i - 1u] + x[i + 1u] + x[i - w] + x[i + w]);`, "16, 16", [3]uint32{16, 16, 1}, 65536, 65536, "f32"},
	{"mandelbrot", "", `let cx = f32(id.x) / 128.0 - 1.5; let cy = f32(id.y) / 128.0 - 1.0; var a = 0.0; var b = 0.0; var n = 0u;
		for (var k = 0u; k < 256u; k++) { let t = a * a - b * b + cx; b = 2.0 * a * b + cy; a = t; if (a * a + b * b > 4.0) { break; } n++; }
		r[id.y * 256u + id.x] = f32(n) + x[0];`, "8, 8", [3]uint32{32, 32, 1}, 16, 65536, "f32"},
	{"mandelbrot2", "", `let c = vec2<f32>(id.xy) / 128.0 - vec2<f32>(1.5, 1.0); var z = vec2<f32>(0.0); var n = 0u;
		while (n < 256u && dot(z, z) <= 4.0) { z = vec2<f32>(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c; n++; }
		r[id.y * 256u + id.x] = f32(n) + x[0];`, "8, 8", [3]uint32{32, 32, 1}, 16, 65536, "f32"},
	{"nbody", "", `let i = id.x; let px = x[3u * i]; let py = x[3u * i + 1u]; let pz = x[3u * i + 2u]; var ax = 0.0; var ay = 0.0; var az = 0.0;
		for (var j = 0u; j < 512u; j++) { let dx = x[3u * j] - px; let dy = x[3u * j + 1u] - py; let dz = x[3u * j + 2u] - pz;
		let d = dx * dx + dy * dy + dz * dz + 0.01; let s = inverseSqrt(d * d * d); ax += dx * s; ay += dy * s; az += dz * s; }
		r[3u * i] = ax; r[3u * i + 1u] = ay; r[3u * i + 2u] = az;`, "64", [3]uint32{8, 1, 1}, 2048, 2048, "f32"},
	{"nbody4", "@group(0) @binding(2) var<storage, read_write> v: array<vec4<f32>>;", `let i = id.x; let p = v[i]; var a = vec3<f32>(0.0);
		for (var j = 0u; j < 512u; j++) { let d = v[j].xyz - p.xyz; let s = dot(d, d) + 0.01; a += d * (v[j].w * inverseSqrt(s * s * s)); }
		v[512u + i] = vec4<f32>(a, 1.0) + x[0] * r[0];`, "64", [3]uint32{8, 1, 1}, 16, 16, "f32"},
	{"matmul", "", `let n = 128u; if (id.x >= n || id.y >= n) { return; } var s = 0.0; for (var k = 0u; k < n; k++) { s += x[id.y * n + k] * x[k * n + id.x]; }
		r[id.y * n + id.x] = s;`, "8, 8", [3]uint32{16, 16, 1}, 16384, 16384, "f32"},
	{"tiled", "var<workgroup> a: array<f32, 256>; var<workgroup> b: array<f32, 256>;", `let n = 128u; var s = 0.0;
		for (var t = 0u; t < n; t += 16u) { a[l.y * 16u + l.x] = x[id.y * n + t + l.x]; b[l.y * 16u + l.x] = x[(t + l.y) * n + id.x]; workgroupBarrier();
		for (var k = 0u; k < 16u; k++) { s += a[l.y * 16u + k] * b[k * 16u + l.x]; } workgroupBarrier(); }
		r[id.y * n + id.x] = s;`, "16, 16", [3]uint32{8, 8, 1}, 16384, 16384, "f32"},
	{
		"sum", "var<workgroup> w: array<f32, 256>;", `w[l.x] = x[id.x]; workgroupBarrier();
		for (var s = 128u; s > 0u; s >>= 1u) { if (l.x < s) { w[l.x] += w[l.x + s]; } workgroupBarrier(); } if (l.x == 0u) { r[g.x] = w[0]; }`,
		"256",
		[3]uint32{256, 1, 1},
		65536, 256, "f32",
	},
	{
		"histogram", "@group(0) @binding(2) var<storage, read_write> h: array<atomic<u32>>;", "let i = id.x; if (i < arrayLength(&x)) { atomicAdd(&h[u32(x[i] * 16.0)], 1u); } if (i == 9999999u) { r[0] = 1.0; }",
		"64",
		[3]uint32{1024, 1, 1},
		65536, 16, "f32",
	},
	{
		"collatz", "", `let i = id.x; var n = u32(x[i] * 100000.0) + 1u; var c = 0u; while (n != 1u) { if (n % 2u == 0u) { n = n / 2u; } else { n = 3u * n + 1u; } c++; } r[i] = f32(c);`,
		"64",
		[3]uint32{64, 1, 1},
		4096, 4096, "f32",
	},
	{"hash", "", `let i = id.x; var h = i * 747796405u + 2891336453u; for (var k = 0u; k < 32u; k++) { h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u; h = (h >> 22u) ^ h; }
		r[i] = f32(h) * x[0];`, "64", [3]uint32{1024, 1, 1}, 16, 65536, "f32"},
	{
		"filter", "", `let i = id.x; var s = 0.0; for (var k = -4; k <= 4; k++) { let j = clamp(i32(i) + k, 0, 65535); s += x[j] * f32(5 - abs(k)); } r[i] = s;`,
		"64",
		[3]uint32{1024, 1, 1},
		65536, 65536, "f32",
	},
	{"transpose", "", "r[id.x * 256u + id.y] = x[id.y * 256u + id.x];", "16, 16", [3]uint32{16, 16, 1}, 65536, 65536, "f32"},
	{
		"branches", "", `let i = id.x; let v = x[i]; if (v < 0.3) { r[i] = sqrt(v); } else if (v < 0.6) { r[i] = sin(v); } else { r[i] = log(v); }`,
		"64",
		[3]uint32{1024, 1, 1},
		65536, 65536, "f32",
	},
	{"gather", "", "let i = id.x; r[i] = x[u32(x[i] * 65536.0)];", "64", [3]uint32{1024, 1, 1}, 65536, 65536, "f32"},
	{"sparse", "", `let i = id.x; var s = 0.0; let first = i * 8u + u32(x[i] * 8.0); let last = i * 8u + 8u + u32(x[i + 1u] * 8.0);
		for (var k = first; k < last; k++) { s += x[k] * x[u32(x[k] * 65536.0)]; } r[i] = s;`, "64", [3]uint32{128, 1, 1}, 65536, 8192, "f32"},
	{"sort", "", `let i = id.x; var a: array<f32, 8>; for (var k = 0u; k < 8u; k++) { a[k] = x[8u * i + k]; }
		for (var p = 0u; p < 8u; p++) { for (var k = 0u; k < 7u - p; k++) { if (a[k] > a[k + 1u]) { let t = a[k]; a[k] = a[k + 1u]; a[k + 1u] = t; } } }
		for (var k = 0u; k < 8u; k++) { r[8u * i + k] = a[k]; }`, "64", [3]uint32{128, 1, 1}, 65536, 65536, "f32"},
	{
		"search", "", `let i = id.x; let v = x[i]; var lo = 0u; var hi = 65536u; while (lo < hi) { let mid = (lo + hi) / 2u; if (x[mid] < v) { lo = mid + 1u; } else { hi = mid; } } r[i] = f32(lo);`,
		"64",
		[3]uint32{1024, 1, 1},
		65536, 65536, "f32",
	},
	{"random", "", `let i = id.x; var s = i * 9781u + 6271u; var h = 0u; for (var k = 0u; k < 64u; k++) { s = s * 1664525u + 1013904223u; let a = f32(s >> 8u) / 16777216.0; s = s * 1664525u + 1013904223u; let b = f32(s >> 8u) / 16777216.0;
		if (a * a + b * b < 1.0) { h++; } } r[i] = f32(h) + x[0];`, "64", [3]uint32{256, 1, 1}, 16, 16384, "f32"},
	{
		"life", "", `let w = 256u; let a = id.x; let b = id.y; var n = 0.0; for (var dy = 0u; dy < 3u; dy++) { for (var dx = 0u; dx < 3u; dx++) { if (dx != 1u || dy != 1u) {
		n += x[((b + dy + 255u) % w) * w + (a + dx + 255u) % w]; } } } r[b * w + a] = select(0.0, 1.0, n == 3.0 || (n == 2.0 && x[b * w + a] == 1.0));`,
		"8, 8",
		[3]uint32{32, 32, 1},
		65536, 65536, "f32",
	},
	{
		"vec4", "@group(0) @binding(2) var<storage, read_write> v: array<vec4<f32>>;", `let i = id.x; v[i] = v[i] * 0.5 + vec4<f32>(x[0], r[0], 1.0, 2.0) * v[i];`,
		"64",
		[3]uint32{256, 1, 1},
		16, 16, "f32",
	},
	{
		"normals", "@group(0) @binding(2) var<storage, read_write> v: array<vec4<f32>>;", `let i = id.x; let n = normalize(v[i].xyz); v[i] = vec4<f32>(n * max(dot(n, vec3<f32>(0.6, 0.8, 0.0)), 0.0) + x[0], r[0]);`,
		"64",
		[3]uint32{256, 1, 1},
		16, 16, "f32",
	},
}

func (k *scalarKernel) text() string {
	return "@group(0) @binding(0) var<storage, read> x: array<" + k.kind + ">;\n@group(0) @binding(1) var<storage, read_write> r: array<" + k.kind + ">;\n" + k.before +
		"\n@compute @workgroup_size(" + k.size + ")\nfn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>, " +
		"@builtin(workgroup_id) g: vec3<u32>, @builtin(local_invocation_index) index: u32) {\n" + k.body + "\n}\n"
}

func (k *scalarKernel) buffers(mod *compile.Module) [][]byte {
	list := [][]byte{random(k.x), make([]byte, 4*k.r)}
	if len(mod.Bindings) > 2 {
		list = append(list, random(1<<16))
	}
	return list
}

// BenchmarkLanes runs users' kernels one invocation after another, four at a time, and as the compiler would.
func BenchmarkLanes(b *testing.B) {
	for i := range scalarKernels {
		k := &scalarKernels[i]
		for _, mode := range []struct {
			name string
			o    compile.Options
		}{{"one", compile.Options{}}, {"four", widened[0]}, {"chosen", compile.Options{Widen: lanes.Widen}}} {
			b.Run(k.name+"/"+mode.name, func(b *testing.B) {
				mod, err := compile.Compile(k.text(), "main", compile.Options{Guard: true, Wazero: true, Widen: mode.o.Widen, Always: mode.o.Always})
				if err != nil {
					b.Fatal(err)
				}
				h := compiletest.Load(b, mod, k.groups, nil, k.buffers(mod))
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					h.Launch(b)
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(best)/1000, "best-µs")
				b.ReportMetric(float64(len(mod.Wasm)), "bytes")
			})
		}
	}
}
