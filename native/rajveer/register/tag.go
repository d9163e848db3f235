// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js && !rajveer

package register

// Without the tag, the program has the default driver's library as well, which defines the same symbols.
var _ = build_with_the_tag_rajveer
