package churn

import "time"

// Sighting is what was seen of one backend, by its answers.
type Sighting struct {
	Name    string
	First   time.Time // end of its first answer since the latest mark; zero: there is none since
	Last    time.Time // end of its latest answer, also of one before the mark
	Answers uint64    // since the latest mark
}
