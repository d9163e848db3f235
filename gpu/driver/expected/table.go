// SPDX-License-Identifier: Apache-2.0

package expected

var table = []Failure{
	{Driver: "gogpu", Case: "KernelErrors/types", Why: "the compiler (naga in Go, 0.17.16) converts a value that has the wrong type"},
	{Driver: "gogpu", Case: "KernelErrors/unknown ", Why: "the compiler says in which function an unknown name is, and not in which line"},
}
