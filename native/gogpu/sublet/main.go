// SPDX-License-Identifier: Apache-2.0

// Command sublet is native/sublet with the driver gogpu. It needs no C compiler: CGO_ENABLED=0 go build.
package main

import (
	"github.com/sublet-gpu/sublet/native/command"
	_ "github.com/sublet-gpu/sublet/native/gogpu"
)

func main() { command.Main() }
