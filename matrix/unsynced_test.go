// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// warnings collects them.
type warnings []string

func (*warnings) Debug(string, ...any) {}

func (w *warnings) Warn(msg string, _ ...any) { *w = append(*w, msg) }

// TestCloseUnsynced closes matrices of wrapped memory: those with results that nobody synced are logged, once, with the last share.
func TestCloseUnsynced(t *testing.T) {
	var log warnings
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		for _, c := range []struct {
			name string
			use  func(m *matrix.Dense[float32])
			want int
		}{
			{"nothing", func(*matrix.Dense[float32]) {}, 0},
			{"read by a kernel", func(m *matrix.Dense[float32]) { devtest.Must[[]float32](t)(matrix.Neg[float32](m).Read(t.Context())) }, 0},
			{"synced", func(m *matrix.Dense[float32]) { devtest.Check(t, m.Fill(1)); devtest.Check(t, m.Sync(t.Context())) }, 0},
			{"given up by Touch", func(m *matrix.Dense[float32]) { devtest.Check(t, m.Fill(1)); devtest.Check(t, m.Touch()) }, 0},
			{"a view that lives on", func(m *matrix.Dense[float32]) {
				v := m.Row(0)
				t.Cleanup(func() { _ = v.Close() })
				devtest.Check(t, m.Fill(1))
			}, 0},
			{"unsynced", func(m *matrix.Dense[float32]) { devtest.Check(t, m.Fill(1)) }, 1},
		} {
			log = nil
			m := devtest.Must[*matrix.Dense[float32]](t)(matrix.Wrap(dev, 2, 2, []float32{1, 2, 3, 4}))
			c.use(m)
			devtest.Check(t, m.Close())
			devtest.Check(t, m.Close())
			if len(log) != c.want || c.want > 0 && !strings.Contains(log[0], "without Sync") {
				t.Errorf("%s: %q", c.name, []string(log))
			}
		}
	}, gpu.WithLogger(&log))
}
