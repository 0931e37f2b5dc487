package app

// Storage says where a daemon keeps what outlives it.
type Storage struct {
	Path string // of a folder, made when it is needed; empty: nothing is kept
}
