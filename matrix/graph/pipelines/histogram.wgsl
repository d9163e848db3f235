// SPDX-License-Identifier: Apache-2.0

// Counts grey pixels by their level: each workgroup for itself first, so that few meet at one counter of all.

@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> range: Range;

struct Range {
    sublet_groups: u32,
    sublet_len_pixels: u32,
}

const LEVELS = 256u;
const EACH = 16u; // pixels of one invocation

var<workgroup> mine: array<atomic<u32>, LEVELS>;

@compute @workgroup_size(256)
fn histogram(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = (group.y * range.sublet_groups + group.x) * LEVELS * EACH + lane;
    atomicStore(&mine[lane], 0u);
    workgroupBarrier();
    for (var k = 0u; k < EACH; k += 1u) {
        let i = first + k * LEVELS;
        if (i < range.sublet_len_pixels) {
            atomicAdd(&mine[pixels[i] & 255u], 1u);
        }
    }
    workgroupBarrier();
    let n = atomicLoad(&mine[lane]);
    if (n > 0u) {
        atomicAdd(&counts[lane], n);
    }
}
