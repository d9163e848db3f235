// SPDX-License-Identifier: Apache-2.0
//
// Counts the turns of a loop. What it adds depends on memory, so that no compiler counts for it.

struct Params {
	turns: u32,
}

@group(0) @binding(0) var<storage, read_write> made: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(1)
fn main() {
	var n = 0u;
	for (var i = 0u; i < params.turns; i = i + 1u) {
		n = n + 1u + made[1];
	}
	made[0] = n;
}
