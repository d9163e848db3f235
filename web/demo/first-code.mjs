// SPDX-License-Identifier: Apache-2.0

// The update steps that the first page offers. A step is a function body; first-world.mjs says what it has in scope.

/** @type {Record<string, string>} */
export const examples = {
  gravity: `// x, y, vx and vy: rows of one matrix.
const dx = x.sub(pull.x), dy = y.sub(pull.y);
const r2 = dx.square().add(dy.square()).add(0.02);
const g = r2.pow(-1.5).mul(-0.15 * dt);

vx.assign(vx.add(dx.mul(g)).mul(0.9995));
vy.assign(vy.add(dy.mul(g)).mul(0.9995));

x.assign(x.add(vx.mul(dt)));
y.assign(y.add(vy.mul(dt)));`,

  attractor: `// A map of Clifford's, whose numbers drift.
const a = 1.7 + 0.3 * Math.sin(time / 5), b = 1.7;
const k = 2.1, u = x.mul(k), v = y.mul(k);
const tox = v.mul(a).sin().add(u.mul(a).cos().mul(0.6));
const toy = u.mul(b).sin().add(v.mul(b).cos().mul(1.2));

vx.assign(tox.div(k).sub(x));
vy.assign(toy.div(k).sub(y));

x.assign(x.add(vx));
y.assign(y.add(vy));`,

  wgsl: `// A function of yours as a part of expressions.
const bend = fn(\`
  fn bend(a: f32, b: f32, t: f32) -> f32 {
    return sin(3.1*a + t) * cos(2.3*b) + 0.6 * cos(4.0*b - t);
  }\`);

vx.assign(vx.mul(0.9).add(bend(y, x, time).mul(0.06)));
vy.assign(vy.mul(0.9).sub(bend(x, y, time).mul(0.06)));

x.assign(x.add(vx.mul(dt)).sub(x.mul(0.2 * dt)));
y.assign(y.add(vy.mul(dt)).sub(y.mul(0.2 * dt)));`,
};
