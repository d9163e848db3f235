// wrap: what build.go puts behind a user's functions. Words in capitals stand for names, types and numbers.

// A stored element of less than a word belongs to one invocation, so that clearing its bits and setting them need not be one step.

fn sublet_load_NAME(sublet_i: u32) -> TYPE {
  let sublet_s = sublet_i % PER * BITS;
  let sublet_v = (WORD >> sublet_s) & MASK;
  return VALUE;
}

fn sublet_store_NAME(sublet_i: u32, sublet_x: TYPE) {
  let sublet_s = sublet_i % PER * BITS;
  atomicAnd(&ELEMENT, ~(MASK << sublet_s));
  atomicOr(&ELEMENT, (RAW & MASK) << sublet_s);
}

// The entry points for ranges of one to three dimensions. A workgroup finds its place in a grid of tiles, however the launch had to
// lay the groups out. Items beyond the range do nothing; comparing with what is left of it cannot wrap where a sum could.

fn sublet_main1(@builtin(workgroup_id) sublet_wg: vec3<u32>, @builtin(local_invocation_id) sublet_li: vec3<u32>) {
SET  let sublet_b = sublet_p.p_sublet_base;
  let sublet_n = sublet_p.p_sublet_count;
  let sublet_g = sublet_p.p_sublet_tiles;
  let sublet_t = sublet_wg.y * sublet_p.p_sublet_groups + sublet_wg.x;
  if (sublet_t >= sublet_g) { return; }
  let sublet_s = sublet_t * Xu;
  if (sublet_li.x >= sublet_n - sublet_s) { return; }
  KERNEL(sublet_b + sublet_s + sublet_li.x);
}

fn sublet_main2(@builtin(workgroup_id) sublet_wg: vec3<u32>, @builtin(local_invocation_id) sublet_li: vec3<u32>) {
SET  let sublet_b = sublet_p.p_sublet_base;
  let sublet_n = sublet_p.p_sublet_count;
  let sublet_g = sublet_p.p_sublet_tiles;
  let sublet_t = sublet_wg.y * sublet_p.p_sublet_groups + sublet_wg.x;
  let sublet_y = sublet_t / sublet_g.x;
  if (sublet_y >= sublet_g.y) { return; }
  let sublet_s = vec2<u32>(sublet_t - sublet_y * sublet_g.x, sublet_y) * vec2<u32>(Xu, Yu);
  let sublet_r = sublet_n - sublet_s;
  if (sublet_li.x >= sublet_r.x || sublet_li.y >= sublet_r.y) { return; }
  KERNEL(sublet_b + sublet_s + sublet_li.xy);
}

fn sublet_main3(@builtin(workgroup_id) sublet_wg: vec3<u32>, @builtin(local_invocation_id) sublet_li: vec3<u32>) {
SET  let sublet_b = sublet_p.p_sublet_base;
  let sublet_n = sublet_p.p_sublet_count;
  let sublet_g = sublet_p.p_sublet_tiles;
  let sublet_t = sublet_wg.y * sublet_p.p_sublet_groups + sublet_wg.x;
  let sublet_y = sublet_t / sublet_g.x;
  let sublet_z = sublet_y / sublet_g.y;
  if (sublet_z >= sublet_g.z) { return; }
  let sublet_s = vec3<u32>(sublet_t - sublet_y * sublet_g.x, sublet_y - sublet_z * sublet_g.y, sublet_z) * vec3<u32>(Xu, Yu, Zu);
  let sublet_r = sublet_n - sublet_s;
  if (sublet_li.x >= sublet_r.x || sublet_li.y >= sublet_r.y || sublet_li.z >= sublet_r.z) { return; }
  KERNEL(sublet_b + sublet_s + sublet_li);
}
