package compile

import "testing"

func TestFirst(t *testing.T) {
	src := `struct P { a: f32, n: u32 }
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= p.n) { return; }
  var s = 0.0;
  for (var k = 0u; k < 4u; k++) { s += x[i] * p.a; }
  y[i] = s + y[i];
}`
	mod, err := Compile(src, "main", Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 100
	var x, y []float32
	for i := range n {
		x = append(x, float32(i))
		y = append(y, 1)
	}
	h := load(t, mod, [3]uint32{2, 1, 1}, append(floats(2), words(uint32(n-1))...), [][]byte{floats(x...), floats(y...)})
	if r := h.launch(t); r != 0 {
		t.Fatal(r)
	}
	got := h.buffer(1, 4*n)
	for i := range n {
		want := 1 + 8*float32(i)
		if i == n-1 {
			want = 1
		}
		if float(got, i) != want {
			t.Errorf("%d: %v want %v", i, float(got, i), want)
		}
	}
}
