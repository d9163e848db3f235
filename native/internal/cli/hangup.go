// SPDX-License-Identifier: Apache-2.0

//go:build !js

package cli

import "syscall"

// hangup says that the terminal goes.
const hangup = syscall.SIGHUP
