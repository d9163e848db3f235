// SPDX-License-Identifier: Apache-2.0

package cli

import "syscall"

// hangup stands for a signal that a page does not have.
const hangup = syscall.SIGTERM
