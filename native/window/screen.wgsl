// SPDX-License-Identifier: Apache-2.0

// Draws the matrix field as a lit relief, over the whole window. rows, cols, stride and first, which say where its elements are, are
// constants that the program writes above this text.

@group(0) @binding(0) var<storage, read> field: array<f32>;

struct Corner {
	@builtin(position) position: vec4f,
	@location(0) at: vec2f, // from 0 to 1 within the window, from its upper left corner on
}

// A triangle whose hypotenuse touches the window's lower right corner covers the window.
@vertex
fn corner(@builtin(vertex_index) i: u32) -> Corner {
	let at = vec2f(f32((i << 1u) & 2u), f32(i & 2u));
	return Corner(vec4f(at.x * 2 - 1, 1 - at.y * 2, 0, 1), at);
}

// The field is a torus.
fn element(row: i32, col: i32) -> f32 {
	return field[first + ((row + rows) % rows) * stride + (col + cols) % cols];
}

fn height(p: vec2f) -> f32 {
	let c = vec2i(floor(p));
	let part = fract(p);
	let above = mix(element(c.y, c.x), element(c.y, c.x + 1), part.x);
	let below = mix(element(c.y + 1, c.x), element(c.y + 1, c.x + 1), part.x);
	return mix(above, below, part.y);
}

// From deep water over a lagoon to sand and light.
const palette = array(
	vec3f(0.02, 0.05, 0.13), vec3f(0.03, 0.22, 0.36), vec3f(0.09, 0.56, 0.58), vec3f(0.96, 0.78, 0.47), vec3f(1.00, 0.97, 0.88),
);

@fragment
fn shade(c: Corner) -> @location(0) vec4f {
	let p = c.at * vec2f(f32(cols), f32(rows)) - 0.5;
	let x = clamp(height(p) * 10, 0, 3.999);
	let i = u32(x);
	var stops = palette;
	let colour = mix(stops[i], stops[i + 1], fract(x));

	let slope = vec2f(height(p + vec2f(1, 0)) - height(p - vec2f(1, 0)), height(p + vec2f(0, 1)) - height(p - vec2f(0, 1)));
	let normal = normalize(vec3f(-6 * slope, 1));
	let light = max(dot(normal, normalize(vec3f(-0.5, -0.6, 0.8))), 0);
	return vec4f(colour * (0.35 + 0.8 * light) + 0.35 * pow(light, 40), 1);
}
