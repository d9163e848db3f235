// SPDX-License-Identifier: Apache-2.0

import type { Program } from "./types/init.js";

/** What a bundler makes of an imported program, as a rule its address. `init({ wasm, simdWasm, cruncherWasm })` takes it. */
declare const program: Program;
export default program;
