// SPDX-License-Identifier: Apache-2.0

// Command sublet does matrix mathematics on the GPU over NumPy's .npy files.
//
//	sublet info
//	sublet mul a.npy b.npy -o c.npy
//	sublet eval 'tanh(A*B + C)' -i A=a.npy -i B=b.npy -i C=c.npy -o out.npy
//	sublet params list model.params
//	sublet params convert model.params model.safetensors
//	sublet run add3.wgsl -g 1000 -l 100 -a arr=arr.npy:partial-read,write -o arr=out.npy
//	sublet tune
//
// With --json every command prints one JSON value on standard output, and an object when it fails. The exit status is 0 or 1.
package main

import "github.com/sublet-gpu/sublet/native/command"

func main() { command.Main() }
