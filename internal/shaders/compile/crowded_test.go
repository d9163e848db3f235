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

func TestCrowdedRegisters(t *testing.T) {
	mod, err := compile.Compile(crowded, "main", compile.Options{Guard: true})
	if err != nil {
		t.Fatal(err)
	}
	r := make([]byte, 13*24*4)
	compiletest.Run(t, mod, [3]uint32{1, 1, 1}, nil, [][]byte{words(0, 0, 0, 0), r})
	if got := float(r, 24+3); got != -2.75 {
		t.Errorf("got %v, want -2.75", got)
	}
}
