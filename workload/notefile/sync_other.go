//go:build !unix

package notefile

// syncFolder does nothing: folders cannot be synchronised here.
func syncFolder(string) error { return nil }
