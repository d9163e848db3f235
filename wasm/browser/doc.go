// SPDX-License-Identifier: Apache-2.0

// Package browser is the driver for WebGPU in web pages and workers, through syscall/js.
//
// It works in any Go program built for js/wasm and started by the standard wasm_exec.js.
//
// # The helper
//
// A call from WebAssembly into JavaScript costs about a microsecond, so the driver hands a whole command list to a
// JavaScript helper, glue.js, in one call. Opening the first device finds the helper in one of two ways:
//
//   - The page has loaded it already, as the npm package does. A loader that also passes the program's memory to the
//     helper's setMemory makes uploads and readbacks go straight to and from Go's memory. With a function that calls the export
//     sublet_settled, and resumes the program if nothing came of that, waiting takes less of the page's time.
//   - The driver installs the copy that is embedded in the program: as a script element in a page, by importScripts in a
//     classic worker, by eval only in a module worker. A page with a Content-Security-Policy must allow a blob: script or
//     an inline one, or mark its own scripts with a nonce, which the driver then reuses.
//
// Otherwise, for example under a policy of script-src 'self' 'wasm-unsafe-eval', opening a device is fault.ErrUnsupported:
// the page or worker has to load glue.js itself, before the program.
//
// # Handles
//
// The platform's objects are values of type [syscall/js.Value]: GPUDevice for Adopt and Handle, GPUBuffer for
// ImportBuffer and the Handle of a buffer, and for host memory that lives in JavaScript a typed array, a DataView, an ArrayBuffer
// or a SharedArrayBuffer.
//
// # Errors
//
// WebGPU reports most errors after the fact. They surface as errors of the next Submit, Read or Wait.
package browser
