// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

import (
	"regexp"
	"runtime"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// computesHalves reports whether an adapter's compiler may fail at float16: on ARM that of llvmpipe, as of Mesa 22.3 in Debian 12, ends
// the process or yields other numbers, for which wgpu may refuse the functions. A probe could end the process, too.
func computesHalves(arch string, info driver.AdapterInfo) bool {
	return arch == "arm64" && info.Limits.MaxLoopsPerInvoking > 0
}

var halfFunctions = regexp.MustCompile(`\b(un)?pack2x16float\b`)

// computedHalves is a kernel's text with functions in place of pack2x16float and unpack2x16float. They compute with integers but for
// numbers that are subnormal in float16, which float32 holds as normal ones. What is rounded goes to even.
func computedHalves(source string) string {
	if !halfFunctions.MatchString(source) {
		return source
	}
	return halfFunctions.ReplaceAllString(source, "sublet_${1}pack") + `
fn sublet_unpack(pair: u32) -> vec2<f32> {
  let half = (vec2<u32>(pair) >> vec2<u32>(0u, 16u)) & vec2<u32>(0xffffu);
  let size = half & vec2<u32>(0x7fffu);
  let normal = (size << vec2<u32>(13u)) + select(vec2<u32>(0x38000000u), vec2<u32>(0x70000000u), size >= vec2<u32>(0x7c00u));
  let small = bitcast<vec2<u32>>(vec2<f32>(size) * 5.9604644775390625e-8);
  let bits = select(normal, small, size < vec2<u32>(0x400u)) | ((half & vec2<u32>(0x8000u)) << vec2<u32>(16u));
  return bitcast<vec2<f32>>(bits);
}
fn sublet_pack(pair: vec2<f32>) -> u32 {
  let bits = bitcast<vec2<u32>>(pair);
  let size = bits & vec2<u32>(0x7fffffffu);
  let normal = (size - 0x38000000u + 0xfffu + ((size >> vec2<u32>(13u)) & vec2<u32>(1u))) >> vec2<u32>(13u);
  let small = bitcast<vec2<u32>>(bitcast<vec2<f32>>(size) + 0.5) - 0x3f000000u;
  let beyond = select(vec2<u32>(0x7c00u), vec2<u32>(0x7e00u), size > vec2<u32>(0x7f800000u));
  let finite = select(normal, small, size < vec2<u32>(0x38800000u));
  let half = select(finite, beyond, size >= vec2<u32>(0x47800000u)) | ((bits >> vec2<u32>(16u)) & vec2<u32>(0x8000u));
  return half.x | (half.y << 16u);
}
`
}

// text is what the library is to compile of a kernel.
func (d *device) text(source string) string {
	if computesHalves(runtime.GOARCH, d.Info()) {
		return computedHalves(source)
	}
	return source
}
