// SPDX-License-Identifier: Apache-2.0

package rajveer

import "github.com/sublet-gpu/sublet/internal/shaders/wgsl"

// rewrite writes a kernel for naga 0.13, which wants numbers as sizes of workgroups.
func rewrite(source string) string {
	s, err := wgsl.Tokenize(source)
	if err != nil {
		return source // the compiler says it better
	}
	return s.LiteralGroups()
}
