package churn

import "fmt"

// The reasons of an [Announcement], a closed list.
const (
	AnnounceScaledUp       = "ScaledUp"
	AnnounceScaledDown     = "ScaledDown"
	AnnounceKilled         = "Killed"
	AnnounceRestored       = "Restored"
	AnnouncePaused         = "Paused"
	AnnounceResumed        = "Resumed"
	AnnounceStopped        = "Stopped"        // all cycles are done
	AnnounceRefused        = "Refused"        // and paused
	AnnounceStuck          = "Stuck"          // and paused
	AnnounceAborted        = "Aborted"        // and paused
	AnnounceExternalChange = "ExternalChange" // and stopped
	AnnounceDryRun         = "DryRun"         // once, what would be done
)

// announce tells those who look at the workload.
func (c *Cycle) announce(reason, format string, args ...any) {
	warning := false
	switch reason {
	case AnnounceRefused, AnnounceStuck, AnnounceAborted, AnnounceExternalChange:
		warning = true
	}
	c.o.Announce(Announcement{Reason: reason, Warning: warning, Message: fmt.Sprintf(format, args...)})
}

// announceStep says what was done to the workload.
func (c *Cycle) announceStep(from, to, kill int) {
	switch {
	case kill > 0:
		c.announce(AnnounceKilled, "Stopped %d of %d backends without drain; the baseline is %d.", kill, from, c.baseline)
	case to > from:
		c.announce(AnnounceScaledUp, "Scaled from %d to %d replicas; the baseline is %d.", from, to, c.baseline)
	default:
		c.announce(AnnounceScaledDown, "Scaled from %d to %d replicas; the baseline is %d.", from, to, c.baseline)
	}
}
