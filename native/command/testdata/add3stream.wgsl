// Adds 3 to each element of arr, which are unsigned.
fn add3stream(i: u32) {
  arr[i] = arr[i] + 3u;
}
