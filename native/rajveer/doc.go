// SPDX-License-Identifier: Apache-2.0

// Package rajveer is the driver over github.com/rajveermalviya/go-webgpu/wgpu v0.17.1, which carries wgpu-native v0.17, for programs that
// use this binding themselves. It is a module of its own, as the binding is a download of 130 MB: such a program imports package
// native/rajveer/register and is built with the tag rajveer, which leaves the driver over another wgpu-native out. What the driver does is
// documented in package core. Its handles are *wgpu.Device and *wgpu.Buffer.
//
// The compiler of this version, naga 0.13, knows less WGSL than those of others.
package rajveer
