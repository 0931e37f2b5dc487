package testbed

import "github.com/steadyprobe/steadyprobe/internal/testcert"

// Owner is what a server belongs to and ends with: any testing.TB, or a program
// that needs servers outside of tests, such as bench. The methods do as those
// of testing.TB; Fatal and Fatalf do not return.
type Owner interface {
	testcert.Owner
	Cleanup(func())
	Error(args ...any)
	Errorf(format string, args ...any)
	Failed() bool
	Logf(format string, args ...any)
}
