// SPDX-License-Identifier: Apache-2.0

package expected

var table = []Failure{}
