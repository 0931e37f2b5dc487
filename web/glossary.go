package web

// word is one of the page's, in plain words.
type word struct{ Name, Text string }

// wordGroup is words that belong together.
type wordGroup struct {
	Name  string
	Words []word
}

// firstWords are those without which no figure of the page can be read.
func firstWords() []word {
	return []word{
		{"Intended time", "when the schedule says that a request starts. A slow door never moves it."},
		{"Latency", "from the intended time to the last byte of the answer: waiting behind a stalled door counts."},
		{"Service time", "from when a connection was given to the request to the last byte: without the waiting."},
		{"Lateness", "how late the probe itself was: its own fault, not the door’s."},
		{"Backlog", "requests that are due and wait for a connection."},
		{"p99", "99 of 100 requests took no longer."},
	}
}

// moreWords are all others that the page uses.
func moreWords() []wordGroup {
	return []wordGroup{
		{"Who is probed", []word{
			{"Door", "what is probed: a proxy, a router, an ingress controller, a load balancer."},
			{"Backend", "who answers behind a door."},
			{"Target", "one door, probed at one rate over one set of connections."},
			{"Closed loop", "a target without a schedule: a request starts when a connection is free. It has no latency."},
		}},
		{"How it fares", []word{
			{"Starting", "no request is completed yet."},
			{"Up", "no request failed in the last minute. A slow door is up."},
			{"Degraded", "a request failed in the last minute, and fewer than half fail lately."},
			{"Down", "half or more fail lately, or nothing was completed for 10 s."},
			{"Stage/reason", "how far a request came before it failed, and why: schedule, resolve, connect, proxy, tls, write, read or response."},
			{"Objective", "what is promised: so many of 100 requests succeed within a latency."},
		}},
		{"Requests", []word{
			{"Set, kept", "requests a second that are configured, and that were completed in the last minute, failed ones included."},
			{"Scheduled", "requests that became due: completed, in flight or in the backlog."},
			{"In flight", "begun, and not completed."},
			{"Completed", "ended, as a success or as a failure."},
			{"Expired", "waited in the backlog for longer than is allowed: a failure that was never sent."},
			{"Status", "the number that an HTTP answer begins with: 200 is a success, 5xx says that door or backend could not serve."},
		}},
		{"Figures", []word{
			{"p50, p99.9", "half of the requests, 999 of 1,000, took no longer."},
			{"Max", "the longest of them."},
			{"Percentile", "how many of 100 requests took no longer; the plot has 90, 99 and 99.9 at equal distances, so that the few slow ones are seen."},
			{"Trustworthy", "the probe was short of nothing (processor time, memory, files, ports), so that figures tell of the door and not of the probe."},
		}},
		{"Churn", []word{
			{"Churn", "a cycle in which the number of backends is changed on purpose, to see what the door makes of it."},
			{"Step", "one number of replicas in that cycle."},
			{"Replica, ready replica", "one copy of the backend; one that says it can serve."},
			{"Ready endpoint", "an address that the door may send requests to."},
			{"Desired", "how many replicas the present step asks for."},
			{"Baseline", "how many there were before the first change; they are put back at the end."},
			{"Scaling up, scaling down", "from when the number is changed until ready replicas and endpoints have matched it for the settle time."},
			{"Settle", "how long they must have matched: a door reloads and drains after its endpoints are right."},
			{"Settled", "all other time: nothing changes behind the door."},
		}},
		{"Why connections close", []word{
			{"peer", "the door closed or reset it. Harmless between requests; many at once are the mark of a reload."},
			{"announced", "the door said with an answer that it would close it. Harmless."},
			{"error", "what was read or sent left it unusable. The request on it failed."},
			{"timeout", "a request on it took too long, and failed."},
			{"max_age", "it was as old as the configuration lets it become. Harmless: the probe replaces it."},
			{"max_requests", "it carried as many requests as the configuration allows. Harmless: the probe replaces it."},
			{"address_removed", "its address is no longer one of the door’s name. Harmless: the probe follows the name."},
			{"per_request", "the target opens a connection for each request. Harmless."},
			{"reload", "the probe’s configuration changed. Harmless."},
			{"shutdown", "the probe stops. Harmless."},
		}},
	}
}
