// SPDX-License-Identifier: Apache-2.0

// Package gputest tests drivers.
//
// [Run] is to drivers what testing/fstest.TestFS is to file systems: every driver passes it, but for what it is known to fail, so whatever stands on the
// seam in gpu/driver behaves the same on all of them. A driver's test is
//
//	func TestConformance(t *testing.T) { gputest.Run(t, open) }
//
// where open makes a new device each time it is called. A case runs three times on one device, since a cache that
// confuses two objects does so when an id comes back; then all cases run in reverse on a second device, since a case may
// pass only for what another one left behind.
//
// What a driver cannot do right stands in the table of package gpu/driver/expected. Such a case runs on a device of its own, must fail,
// and fails the test if it passes.
//
// Nothing is skipped. Where a device lacks an ability, the suite wants it to be refused.
package gputest
