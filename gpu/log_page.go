// SPDX-License-Identifier: Apache-2.0

//go:build js && sublet_page

package gpu

const lean = true

func debugVariable() string { return "" }

func defaultLogger(string) Logger { return nil }

func now() float64 { return 0 }
