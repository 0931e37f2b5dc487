package churn

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
