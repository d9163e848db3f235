// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// barDelay is how long work may take before there is a bar.
const barDelay = time.Second

// progress draws a bar for each stage of the work. Work that ends within the delay, or without a terminal to draw on,
// draws nothing.
type progress struct {
	mu         sync.Mutex
	now        stage
	quit, gone chan struct{}
}

// stage is a part of the work: so many bytes to read or write, or a negative total where nobody knows.
type stage struct {
	name        string
	done, total int64
}

// newProgress draws to w if it is a terminal.
func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return startProgress(w, barDelay)
}

func startProgress(w io.Writer, delay time.Duration) *progress {
	p := &progress{quit: make(chan struct{}), gone: make(chan struct{})}
	go p.draw(w, delay)
	return p
}

func (p *progress) draw(w io.Writer, delay time.Duration) {
	defer close(p.gone)
	select {
	case <-p.quit:
		return
	case <-time.After(delay):
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	bar, name := newBar(w, stage{}), ""
	defer func() { _ = bar.Clear() }()
	for {
		now := p.stage()
		if now.name != name {
			_ = bar.Clear()
			bar, name = newBar(w, now), now.name
		}
		if now.total < 0 {
			_ = bar.RenderBlank()
		} else {
			bar.ChangeMax64(max(now.total, now.done+1)) // a full bar would end itself
			_ = bar.Set64(now.done)
		}
		select {
		case <-p.quit:
			return
		case <-tick.C:
		}
	}
}

// newBar makes a bar that leaves nothing behind and starts no goroutine.
func newBar(w io.Writer, s stage) *progressbar.ProgressBar {
	length := int64(-1)
	if s.total >= 0 {
		length = s.total + 1
	}
	return progressbar.NewOptions64(length,
		progressbar.OptionSetDescription(s.name),
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionClearOnFinish(),
	)
}

func (p *progress) stage() stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// enter begins the next stage.
func (p *progress) enter(name string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = stage{name, 0, total}
}

// expect adds bytes to come in this stage.
func (p *progress) expect(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.total += n
}

func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.done += int64(n)
}

// stop removes the bar. Nothing is drawn after it returns.
func (p *progress) stop() {
	if p.quit == nil {
		return
	}
	close(p.quit)
	<-p.gone
	p.quit = nil
}

// reader counts what is read through it.
func (p *progress) reader(r io.Reader) io.Reader { return counter{p, r, nil} }

// writer counts what is written through it.
func (p *progress) writer(w io.Writer) io.Writer { return counter{p, nil, w} }

type counter struct {
	p *progress
	r io.Reader
	w io.Writer
}

func (c counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.p.add(n)
	return n, err
}

// Write passes large blocks on in parts, so that the bar moves.
func (c counter) Write(b []byte) (int, error) {
	const part = 1 << 20
	total := 0
	for {
		n, err := c.w.Write(b[:min(len(b), part)])
		c.p.add(n)
		total += n
		b = b[n:]
		if err != nil || len(b) == 0 {
			return total, err
		}
	}
}
