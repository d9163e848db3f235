// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"slices"
)

// window is how many samples are looked at to tell outliers, the newest included.
const window = 5

// outlier is the factor to the median beyond which a sample is left out.
const outlier = 3

// rate is the estimate of one device's throughput.
type rate struct {
	perSecond float64 // items; 0: unknown
	samples   int     // that made it
	recent    []Sample
}

// observe takes a sample in and reports whether it was used. The newest sample weighs 1/k when it is the k-th, and never
// less than weight.
//
// Outliers are left out: one slow call, because a device was busy otherwise, says nothing of the next. When most of the
// recent samples are as different, the device has changed, and the estimate starts again.
func (d *rate) observe(s Sample, fixed, weight float64) bool {
	if len(d.recent) == window {
		d.recent = slices.Delete(d.recent, 0, 1)
	}
	d.recent = append(d.recent, s)
	if d.outlier(s) {
		return false
	}
	// What is fixed is known only roughly; at least an eighth of the time is taken to be work.
	v := float64(s.Count) / math.Max(s.Seconds-fixed, s.Seconds/8)
	if v > outlier*d.perSecond || v < d.perSecond/outlier {
		d.samples = 0
	}
	d.samples++
	d.perSecond += math.Max(1/float64(d.samples), weight) * (v - d.perSecond)
	return true
}

// outlier compares s, which is the last of d.recent, with what the recent samples make expect for its count. Times grow
// with the count, in proportion at the most and not at all where overhead prevails; only what is outside of both counts.
func (d *rate) outlier(s Sample) bool {
	var low, high [window]float64
	for i, o := range d.recent {
		scaled := o.Seconds * (float64(s.Count) / float64(o.Count))
		low[i], high[i] = min(o.Seconds, scaled), max(o.Seconds, scaled)
	}
	n := len(d.recent)
	return s.Seconds > outlier*median(high[:n]) || s.Seconds*outlier < median(low[:n])
}

// median returns the lower one of two in the middle.
func median(x []float64) float64 {
	slices.Sort(x)
	return x[(len(x)-1)/2]
}

// forgive keeps the estimate of a device that was gone as a first guess.
func (d *rate) forgive() { d.samples, d.recent = 0, d.recent[:0] }
