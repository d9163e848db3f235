// SPDX-License-Identifier: Apache-2.0

package cpu

// NewWithin is for the tests outside of the package.
var NewWithin = newWithin
