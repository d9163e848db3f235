// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"slices"
	"strings"
)

// valued are the flags of sublet eval whose value is the next argument.
var valued = []string{"-i", "-o", "--input", "--output", "--driver", "--adapter", "--timeout"}

// A flag as eval has them: a long one in small letters, a short one alone, or with a value that is one.
var (
	longFlag  = regexp.MustCompile(`^--[a-z][a-z-]*(=|$)`)
	shortFlag = regexp.MustCompile(`^-([hio]|i[A-Za-z_]\w*=.*|o[^\s()+*/%]+)$`)
)

// expressionLast moves an expression of sublet eval that begins with a minus behind the flags and a --, so that it is not taken for one.
func expressionLast(args []string) []string {
	if slices.Contains(args, "--") {
		return args
	}
	at, found := -1, false
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case slices.Contains(valued, arg):
			i++
		case !found && !strings.HasPrefix(arg, "-"):
			if arg != "eval" {
				return args
			}
			found = true
		case found && at < 0 && len(arg) > 1 && arg[0] == '-' && !longFlag.MatchString(arg) && !shortFlag.MatchString(arg):
			at = i
		}
	}
	if at < 0 {
		return args
	}
	return append(slices.Delete(slices.Clone(args), at, at+1), "--", args[at])
}
