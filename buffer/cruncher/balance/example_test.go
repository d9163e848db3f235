// SPDX-License-Identifier: Apache-2.0

package balance_test

import (
	"fmt"

	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
)

func Example() {
	b := balance.New()
	for range 2 {
		counts, err := b.Split(balance.Request{ID: 1, Global: 1 << 20, Step: 256, Devices: 2})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(counts)
		// Device 1 is three times as fast.
		b.Observe(1, []balance.Sample{
			{Count: counts[0], Seconds: float64(counts[0]) / 1e6},
			{Count: counts[1], Seconds: float64(counts[1]) / 3e6},
		})
	}
	fmt.Println(b.Stats(1).Shares)
	// Output:
	// [524288 524288]
	// [262144 786432]
	// [0.25 0.75]
}
