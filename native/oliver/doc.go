// SPDX-License-Identifier: Apache-2.0

// Package oliver is the driver over github.com/oliverbestmann/webgpu, which carries wgpu-native v29, and the one that programs get unless
// a build tag takes another. Without cgo it is there but lists no adapters. What it does is documented in package core. Its
// handles are *wgpu.Device and *wgpu.Buffer.
package oliver
