package testcert

// Owner is what certificates are made for, and told when they cannot be: any
// testing.TB, or a program that starts servers outside of tests, such as bench.
// The methods do as those of testing.TB; Fatal and Fatalf do not return.
type Owner interface {
	Helper()
	TempDir() string
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
