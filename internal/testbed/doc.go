// Package testbed starts real servers on loopback for tests, and for whatever
// else can own them (see [Owner]): doors (nginx, HAProxy), a Prometheus that
// scrapes, an Alertmanager and who it notifies, and the probe itself as a process
// of its own. It also drives a real browser ([Chromium]) and, on Linux, builds
// and runs the project's container image.
//
// Each server has its own configuration, folders and ports, all below the
// test's temporary folder, and ends with the test: the cleanup stops it by its
// process id and kills what has not ended in time. On Linux it also ends when
// the test process dies in any other way.
//
// What a server counted is the truth that the probe's own figures are compared
// with, so every server can be asked for its counters without the asking being
// counted, and keeps its account over a reload.
//
// A program that is not installed fails the test with a message that says how
// to install it. Nothing is skipped.
package testbed
