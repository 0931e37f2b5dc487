// Package wire opens connections to doors and sends requests over them: names
// to bytes on the wire and back to samples.
//
// An [Opener], or below HTTP a [Stream], belongs to one target. Each opening runs
// in a goroutine of its own, which becomes the connection's only reader and
// completes every request on it; requests are written by whoever sends, the
// pacer as a rule.
package wire
