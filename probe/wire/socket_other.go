//go:build !unix

package wire

import "errors"

const rawWrites = false

// writeOnce is never called where rawWrites is false.
func writeOnce(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
