// SPDX-License-Identifier: Apache-2.0

package gpu

// Stats counts what a device has done since it was opened, and what it holds. Bytes are those of the data, not of the
// driver's own bookkeeping.
type Stats struct {
	BytesUp      uint64 // host to device
	BytesDown    uint64 // device to host
	Submissions  uint64 // lists handed to the driver
	Dispatches   uint64 // kernels run
	Compilations uint64 // kernels compiled because they were needed
	Prepared     uint64 // kernels compiled ahead of need
	CacheHits    uint64 // kernels found compiled
	LiveBytes    uint64 // of buffers in use now, external ones not counted
	PeakBytes    uint64 // the most LiveBytes ever was
	PooledBytes  uint64 // of closed buffers kept for reuse
	Buffers      int    // in use now, external ones counted
	Kernels      int    // compiled and held now
}

// Stats returns the counters as they are now.
func (d *Device) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}
