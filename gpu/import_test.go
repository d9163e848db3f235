// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// interrupted does something else once while a list is submitted, and counts the buffers that are freed.
type interrupted struct {
	driver.Device
	meanwhile func()
	freed     int
}

func (i *interrupted) Submit(l *driver.CommandList) error {
	if do := i.meanwhile; do != nil {
		i.meanwhile = nil
		do()
	}
	return i.Device.Submit(l)
}

func (i *interrupted) FreeBuffer(id driver.BufferID) {
	i.freed++
	i.Device.FreeBuffer(id)
}

// TestImportedWhileGoing imports a buffer again that was given up, but is kept by a batch that somebody else has begun meanwhile.
func TestImportedWhileGoing(t *testing.T) {
	dev, m, _ := openMoody(t)
	theirs, other := filled(t, dev, 1), filled(t, dev, 2)
	drv := &interrupted{Device: m}
	dev.drv, dev.queue.drv = drv, drv
	imported := func() *Buffer {
		t.Helper()
		b, err := dev.ImportBuffer(theirs.Handle())
		must(t, err)
		return b
	}
	leave := func(b *Buffer) { // with a batch behind it
		t.Helper()
		must(t, b.Clear(0, 16))
		drv.meanwhile = func() { must(t, other.Clear(0, 16)) }
		must(t, b.Close())
	}
	leave(imported())
	again := imported()
	must(t, errors.Join(dev.Flush(), again.Clear(0, 16), dev.Flush()))
	if drv.freed > 0 {
		t.Fatal("the buffer was freed after it had been imported again")
	}
	leave(again)
	must(t, errors.Join(imported().Close(), dev.Flush()))
	if drv.freed != 1 {
		t.Errorf("the buffer was freed %d times", drv.freed)
	}
}
