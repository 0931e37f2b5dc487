// Package config holds what the user wrote: the schema of the configuration
// file, its defaults, strict loading and validation.
//
// [Load] reports every problem of a file at once, each with its line and field
// and with what to write instead. What a file holds of secrets is kept in
// [Secret] and [URL] values, which show nothing however they are printed, and
// [Config.Masked] renders the effective configuration for people.
//
// The package imports no sibling: the application turns a [Target] into what
// the other packages need.
package config
