// SPDX-License-Identifier: Apache-2.0

//go:build js && !sublet_page

package gpu

import "syscall/js"

const lean = false

func debugVariable() string {
	if v := js.Global().Get("SUBLET_DEBUG"); v.Type() == js.TypeString {
		return v.String()
	}
	return ""
}

// console is the Logger of pages. Package log/slog would be a tenth of their programs.
type console struct{}

func defaultLogger(string) Logger { return console{} }

func (console) Debug(msg string, args ...any) { console{}.log("debug", msg, args) }

func (console) Warn(msg string, args ...any) { console{}.log("warn", msg, args) }

func (console) log(level, msg string, args []any) {
	js.Global().Get("console").Call(level, append([]any{msg}, args...)...)
}

// now is the time in milliseconds. Package time would make pages' programs larger.
func now() float64 { return js.Global().Get("performance").Call("now").Float() }
