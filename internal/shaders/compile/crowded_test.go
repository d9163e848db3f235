// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/internal/shaders/compile"
	"github.com/sublet-gpu/sublet/internal/shaders/compile/compiletest"
)

// Registers are short here. What wazero 1.12 makes of v128.bitselect on amd64 then is wrong.
const crowded = `
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
var<private> zi: i32;
var<private> zu: u32;
var<private> zf: f32;
var<private> p1: vec2<f32>;
var<private> p2: u32;
const k3: i32 = -127223868i;
@compute @workgroup_size(13, 1, 1)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(num_workgroups) nwg: vec3<u32>) {
  let base = wid.z * 13u + lid;
  var iu: array<u32, 8>; var jf: array<f32, 8>;
  zu = x[arrayLength(&x) - 1u]; zi = i32(zu); zf = f32(zu);
  for (var cnt15 = 0u; cnt15 < 4u; cnt15++) {
      p1[wid[0] % 2u] = vec3<f32>(-1.25f).x + zf * p1[0];
    jf[3] += f32(1i | zi);
    for (var cnt17 = 0u; cnt17 < 4u; cnt17++) {
    }
    if f32(zi) == (p1.y + p1.r) / (vec4<f32>(-3.5f).y + zf) + zf {
    } else {
      p1[lid % 2u] += -p1.y / zf - p1.r;
    }
  }
      switch k3 {
        case 3i, 6i, default: {
            iu[lid % 8u] = wid[lid % 3u];
              p1.x = -p1.x * jf[zu % 8u] + zf + -(vec3<f32>(1f, 0.5f, 2.75f) + zf).z;
            p2 = vec4<u32>(1u - (vec4<u32>(27u, 3395405563u, 29u, 2148928418u) | vec4<u32>(zu)) + zu + zu).z;
        }
      }
    var cnt36 = 0u;
    loop {
      iu[vec4<u32>(0x22u, 4u, 2997699880u, 1385531636u).x % 8u] = (((vec2<u32>(0x11u, 32u) ^ vec2<u32>(zu)) + p2) | vec2<u32>(zu) | ((vec2<u32>(11u, 2957883948u) ^ vec2<u32>(zu)) + zu)).y ^ zu;
      continuing {
        cnt36 += 1u;
        break if cnt36 >= 4u;
      }
    }
  r[base * 24u + 3u] = bitcast<u32>(p1.x);
}
`

// Here a select of floats is wrong.
const crowdedSelect = `
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> r: array<u32>;
var<private> zi: i32;
var<private> zu: u32;
var<private> zf: f32;
var<private> p1: array<u32, 4> = array<u32, 4>(6u, 29u, 12u, 23u);
const k2: array<u32, 5> = array<u32, 5>(13u, 9u, 0x60aa14dcu, 0xdc3ea5f8u, 0xfu);
const k3: vec4<f32> = vec4<f32>(-1.25f, 1f, -3.75f, -2.25f);
@compute @workgroup_size(4, 4, 2)
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(num_workgroups) nwg: vec3<u32>) {
  let base = wid.z * 32u + lid;
  var iu: array<u32, 8>; var jf: array<f32, 8>;
  for (var q = 0u; q < 8u; q++) { iu[q] = x[base * 16u + q]; jf[q] = bitcast<f32>(x[base * 16u + 8u + q]); }
  zu = x[arrayLength(&x) - 1u]; zi = i32(zu); zf = f32(zu);
  for (var cnt11 = 0u; cnt11 < 3u; cnt11++) {
      jf[5] = k3[2];
      switch i32(-k3[2] + zf) {
        case 6i, 3i, default: {
          jf[7] -= -zf;
        }
        case 1i: {
          var cnt16 = 0u;
            let v17: vec4<bool> = (((vec4<u32>(vec2<u32>(1u, 25u), vec2<u32>(17u, 38u)) ^ vec4<u32>(zu)) & (((vec4<u32>(33u, 1u, 28u, 5u) + zu) >> (vec4<u32>(8u, 37u, 36u, 1u) | vec4<u32>(zu))) | vec4<u32>(zu))) ^ vec4<u32>(zu)) == 1u + zu / (wid.xxzy | vec4<u32>(zu)) + zu;
              jf[cnt16 % 8u] = jf[wid[select(iu[7], k2[3], v17.g) + zu % 3u] % 8u];
        }
      }
      if vec2<bool>(vec2<i32>(-2i) + zi).yxyy.z {
        switch iu[5] {
          case 2u, 7u: {
            switch cnt11 & 7u {
              case 2u: {
                if all((vec3<i32>(247739480i, 4i, 7i) | vec3<i32>(zi)) >= vec3<i32>(-5i) + zi) { break; }
              }
              default {
              }
            }
          }
          default {
          }
        }
      }
  }
  var cnt25 = 0u;
  while cnt25 < 4u {
    cnt25 += 1u;
    let v26 = (((vec2<i32>(-10i) ^ vec2<i32>(zi) ^ vec2<i32>(zi)) >> (vec2<u32>(2u, 2935784457u).yy | vec2<u32>(zu))) ^ vec2<i32>(zi)) << (vec2<u32>(k2[3], vec2<u32>(37u, 9u).x) | vec2<u32>(zu));
    var v27 = vec4<u32>(vec4<bool>(false, true, false, false) | vec4<bool>(true, true, true, true)) + zu;
    var v28 = bool(firstLeadingBit(v26.y / v26.g));
      if all(vec3<i32>(v26.r, zi, zi) + zi > (vec4<i32>(-3i, -4i, 6i, 0i).xwy | vec3<i32>(zi))) {
        p1[0] = vec2<u32>(v27[1] | zu).y;
      } else {
        jf[2] = -(min(k3[iu[7] % 4u] + zf, select(jf[k2[0] % 8u], -(k3.b + zf), v28)) + zf);
        p1[lid % 4u] = 1u * v27[3];
      }
  }
  r[base * 32u + 26u] = bitcast<u32>(jf[2]);
}
`

func TestCrowdedRegisters(t *testing.T) {
	for _, c := range []struct {
		text  string
		words int // that an invocation writes
		at    int
		want  float64
	}{{crowded, 24, 3, -2.75}, {crowdedSelect, 32, 26, 3.75}} {
		mod, err := compile.Compile(c.text, "main", compile.Options{Guard: true, Wazero: true})
		if err != nil {
			t.Fatal(err)
		}
		r := make([]byte, 32*c.words*4)
		compiletest.Run(t, mod, [3]uint32{1, 1, 1}, nil, [][]byte{make([]byte, 4*(32*16+1)), r})
		if got := float(r, c.words+c.at); got != c.want {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
}
