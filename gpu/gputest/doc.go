// SPDX-License-Identifier: Apache-2.0

// Package gputest tests drivers.
//
// [Run] is to drivers what testing/fstest.TestFS is to file systems: every driver passes it, so whatever stands on the
// seam in gpu/driver behaves the same on all of them. A driver's test is
//
//	func TestConformance(t *testing.T) { gputest.Run(t, open) }
//
// where open makes a new device each time it is called. A case runs three times on one device, since a cache that
// confuses two objects does so when an id comes back; then all cases run in reverse on a second device, since a case may
// pass only for what another one left behind.
//
// Nothing is skipped. Where a device lacks an ability, the suite wants it to be refused.
package gputest
