// SPDX-License-Identifier: Apache-2.0

// The kernels of the pipeline of images, in the form of package buffer/cruncher/kernel: a function of the pixel, with arrays and
// scalars by the names of the task's ports. Beyond its border an image goes on as its outermost pixels.

fn brightness(p: vec2<u32>) {
    let i = p.y * width + p.x;
    let c = frame[i]; // red in the lowest byte; the weights are those of ITU-R BT.601
    grey[i] = (0.299 * f32(c & 255u) + 0.587 * f32((c >> 8u) & 255u) + 0.114 * f32((c >> 16u) & 255u)) / 255.0;
}

fn blur_across(p: vec2<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < taps; k += 1u) {
        let x = clamp(i32(p.x) + i32(k) - i32(taps / 2u), 0, i32(width) - 1);
        sum += weights[k] * image[p.y * width + u32(x)];
    }
    blurred[p.y * width + p.x] = sum;
}

fn blur_down(p: vec2<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < taps; k += 1u) {
        let y = clamp(i32(p.y) + i32(k) - i32(taps / 2u), 0, i32(height) - 1);
        sum += weights[k] * image[u32(y) * width + p.x];
    }
    blurred[p.y * width + p.x] = sum;
}

// The length of the gradient by Sobel's two filters.
fn sobel(p: vec2<u32>) {
    let x0 = u32(max(i32(p.x) - 1, 0));
    let x2 = min(p.x + 1u, width - 1u);
    let y0 = u32(max(i32(p.y) - 1, 0)) * width;
    let y1 = p.y * width;
    let y2 = min(p.y + 1u, height - 1u) * width;
    let gx = image[y0 + x2] - image[y0 + x0] + 2.0 * (image[y1 + x2] - image[y1 + x0]) + image[y2 + x2] - image[y2 + x0];
    let gy = image[y2 + x0] - image[y0 + x0] + 2.0 * (image[y2 + p.x] - image[y0 + p.x]) + image[y2 + x2] - image[y0 + x2];
    edges[y1 + p.x] = gain * sqrt(gx * gx + gy * gy);
}

// To grey pixels of one byte for each of red, green and blue.
fn paint(i: u32) {
    let level = u32(clamp(image[i], 0.0, 1.0) * 255.0 + 0.5);
    pixels[i] = (level * 0x10101u) | 0xff000000u;
}
