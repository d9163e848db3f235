// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"os"
)

// input is a file to read, which may be a pipe that nobody writes: nobody waits for it longer than the context lasts.
type input struct {
	*os.File
	ctx context.Context //nolint:containedctx // readers of formats take an io.Reader
}

// openInput opens a file.
func openInput(ctx context.Context, path string) (*input, error) {
	f, err := await(ctx, func() (*os.File, error) { return os.Open(path) })
	if err != nil {
		return nil, err
	}
	return &input{f, ctx}, nil
}

// size returns how many bytes are left of a file, -1 for what is none.
func (in *input) size() (int64, error) {
	st, err := in.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return -1, err
	}
	at, err := in.Seek(0, io.SeekCurrent)
	return max(st.Size()-at, 0), err
}

// Read reads into memory of its own where it might be left behind.
func (in *input) Read(b []byte) (int, error) {
	if st, err := in.Stat(); err != nil || st.Mode().IsRegular() {
		return in.File.Read(b)
	}
	file := in.File // a call that is left behind must not see it replaced
	got, err := await(in.ctx, func() ([]byte, error) {
		own := make([]byte, min(len(b), 1<<16))
		n, err := file.Read(own)
		return own[:n], err
	})
	return copy(b, got), err
}

// await leaves a call behind when the context ends first. What it still opens then, the end of the process closes.
func await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := call()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
