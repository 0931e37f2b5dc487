package exporter

// catalogue describes the families. It is constant.
var catalogue = [numFamilies]Metric{
	requestsScheduled: {
		Name: "steadyprobe_requests_scheduled_total", Type: Counter, Scope: PerTarget,
		Help: "Requests that the schedule made due.",
		Note: "Always equal to requests completed + in flight + in the backlog. In a closed loop a free connection makes a request due.",
	},
	requests: {
		Name: "steadyprobe_requests_total", Type: Counter, Scope: PerTarget, Labels: []string{"churn_phase"},
		Help: "Requests completed, whatever their outcome, by churn phase at their intended time.",
		Note: "`churn_phase` is empty where no churn is tied to the target, else `settled`, `scaling_up` or `scaling_down`.",
	},
	requestFailures: {
		Name: "steadyprobe_request_failures_total", Type: Counter, Scope: PerTarget,
		Labels: []string{"churn_phase", "failure_stage", "reason"},
		Help:   "Requests that failed, by stage and reason of the failure and churn phase at their intended time.",
		Note:   "Every pair that the target can meet is there from the start.",
	},
	withinObjective: {
		Name: "steadyprobe_requests_within_objective_total", Type: Counter, Scope: PerTarget, Labels: []string{"churn_phase"},
		Help: "Successful requests within the latency objective, by churn phase at their intended time.",
		Note: "Only where a latency objective is set.",
	},
	objectiveLatency: {
		Name: "steadyprobe_objective_latency_seconds", Type: Gauge, Scope: PerTarget,
		Help: "Latency objective of the target.",
		Note: "Only where it is set.",
	},
	objectiveRatio: {
		Name: "steadyprobe_objective_ratio", Type: Gauge, Scope: PerTarget,
		Help: "Share of requests that are to succeed within the latency objective.",
		Note: "Only where it is set.",
	},
	responses: {
		Name: "steadyprobe_responses_total", Type: Counter, Scope: PerTarget, Labels: []string{"code", "protocol"},
		Help: "Answers by exact status code, unknown ones as \"other\", and protocol.",
		Note: "A series appears with its first answer. `code` is empty for `tcp` and `tls`, which have none.",
	},
	sentBytes: {
		Name: "steadyprobe_sent_bytes_total", Type: Counter, Scope: PerTarget,
		Help: "Bytes sent to the door, as on the wire above TCP.",
	},
	receivedBytes: {
		Name: "steadyprobe_received_bytes_total", Type: Counter, Scope: PerTarget,
		Help: "Bytes received from the door, as on the wire above TCP.",
	},
	inFlight: {
		Name: "steadyprobe_requests_in_flight", Type: Gauge, Scope: PerTarget,
		Help: "Requests begun and not completed.",
	},
	backlog: {
		Name: "steadyprobe_requests_backlog", Type: Gauge, Scope: PerTarget,
		Help: "Requests that are due and wait for a connection.",
	},
	requestsPerSecond: {
		Name: "steadyprobe_target_requests_per_second", Type: Gauge, Scope: PerTarget,
		Help: "Configured rate of the target, this process's share.",
		Note: "Not in a closed loop, which has none.",
	},
	targetInfo: {
		Name: "steadyprobe_target_info", Type: Gauge, Scope: PerTarget,
		Labels: []string{"arrival", "loop", "pacing", "reuse", "url"},
		Help:   "How the target is probed; always 1.",
		Note: "`url` is without user info and query. `loop` is `open` or `closed`, `pacing` is `precise` or `economy`, " +
			"`arrival` is `uniform` or `poisson`.",
	},
	latency: {
		Name: "steadyprobe_latency_seconds", Type: Histogram, Scope: PerTarget, Labels: []string{"churn_phase", "outcome"},
		Help: "Time from a request's intended time to the last byte of its answer or its failure.",
		Note: "`outcome` is `success` or `failure`; a request that timed out counts with the time it took. " +
			"Not in a closed loop, where no request has an intended time.",
	},
	serviceTime: {
		Name: "steadyprobe_service_time_seconds", Type: Histogram, Scope: PerTarget, Labels: []string{"outcome"},
		Help: "Time from a request's begun time to the last byte of its answer or its failure.",
		Note: "What a closed-loop tool would report. A request that expired in the backlog has none.",
	},
	phaseTime: {
		Name: "steadyprobe_phase_seconds", Type: Histogram, Scope: PerTarget, Labels: []string{"phase"},
		Help: "Time that a part of a request's way took.",
		Note: "`phase` is `wait` (requests that waited in the backlog; not in a closed loop), `resolve`, `connect`, `tls` (once per lookup or opening), " +
			"`processing` or `transfer` (once per request). A phase that failed counts with its elapsed time.",
	},
	latencyQuantile: {
		Name: "steadyprobe_latency_quantile_seconds", Type: Gauge, Scope: PerTarget, Labels: []string{"q", "window"},
		Help: "Latency quantile over a sliding window, over successes, timeouts and expired requests.",
		Note: "NaN while the window holds fewer than 1/(1-q) of them. Not in a closed loop.",
	},
	latencyClamped: {
		Name: "steadyprobe_latency_clamped_total", Type: Counter, Scope: PerTarget,
		Help: "Latencies above the recordable range, recorded as its upper end.",
		Note: "Not in a closed loop.",
	},
	lateness: {
		Name: "steadyprobe_lateness_seconds", Type: Histogram, Scope: PerTarget,
		Help: "Time from a request's intended time until the probe dealt with it: the probe's own fault.",
		Note: "Not in a closed loop.",
	},
	handshakes: {
		Name: "steadyprobe_tls_handshakes_total", Type: Counter, Scope: PerTarget,
		Labels: []string{"cipher", "key_exchange", "resumed", "tls_version"},
		Help:   "Completed TLS handshakes by what was negotiated.",
		Note:   "A series appears with its first handshake. `cipher` is the IANA name, `key_exchange` the curve's name, or `none`.",
	},
	handshakeTime: {
		Name: "steadyprobe_tls_handshake_seconds", Type: Histogram, Scope: PerTarget, Labels: []string{"resumed"},
		Help: "Time that a completed TLS handshake took.",
		Note: "TLS targets only.",
	},
	certNotAfter: {
		Name: "steadyprobe_tls_certificate_not_after_timestamp_seconds", Type: Gauge, Scope: PerTarget,
		Help: "Earliest end of validity in the door's certificate chain, over all addresses, as seconds since the Unix epoch.",
		Note: "Once a certificate was seen.",
	},
	certNotBefore: {
		Name: "steadyprobe_tls_certificate_not_before_timestamp_seconds", Type: Gauge, Scope: PerTarget,
		Help: "Latest start of validity in the door's certificate chain, over all addresses, as seconds since the Unix epoch.",
		Note: "Once a certificate was seen.",
	},
	certVerified: {
		Name: "steadyprobe_tls_certificate_verified", Type: Gauge, Scope: PerTarget,
		Help: "Whether the door's certificate chain was verified.",
		Note: "Once a certificate was seen.",
	},
	ocspStapled: {
		Name: "steadyprobe_tls_ocsp_stapled", Type: Gauge, Scope: PerTarget,
		Help: "Whether the door stapled an OCSP response.",
		Note: "Once a certificate was seen.",
	},
	connections: {
		Name: "steadyprobe_connections", Type: Gauge, Scope: PerTarget,
		Help: "Open connections, those that close after their last request included.",
	},
	connectionsLimit: {
		Name: "steadyprobe_connections_limit", Type: Gauge, Scope: PerTarget,
		Help: "Configured number of connections, the most at once.",
	},
	connectionsOpened: {
		Name: "steadyprobe_connections_opened_total", Type: Counter, Scope: PerTarget,
		Help: "Connections opened.",
	},
	connectionsClosed: {
		Name: "steadyprobe_connections_closed_total", Type: Counter, Scope: PerTarget, Labels: []string{"reason"},
		Help: "Connections closed, by reason.",
		Note: "`reason` is `peer`, `announced`, `error`, `timeout`, `max_age`, `max_requests`, `address_removed`, `per_request`, `reload` or `shutdown`.",
	},
	connectionFailures: {
		Name: "steadyprobe_connection_failures_total", Type: Counter, Scope: PerTarget, Labels: []string{"failure_stage", "reason"},
		Help: "Openings of connections that failed and that no request was bound to.",
		Note: "Every pair that the target can meet is there from the start.",
	},
	lookups: {
		Name: "steadyprobe_lookups_total", Type: Counter, Scope: PerTarget,
		Help: "Lookups of the target's name.",
		Note: "Only where the host is a name.",
	},
	lookupFailures: {
		Name: "steadyprobe_lookup_failures_total", Type: Counter, Scope: PerTarget, Labels: []string{"reason"},
		Help: "Lookups of the target's name that failed, by reason.",
		Note: "Only where the host is a name. `reason` is `not_found`, `timeout` or `error`.",
	},
	targetAddresses: {
		Name: "steadyprobe_target_addresses", Type: Gauge, Scope: PerTarget,
		Help: "Addresses that the target has now.",
	},
	addressChanges: {
		Name: "steadyprobe_target_address_changes_total", Type: Counter, Scope: PerTarget, Labels: []string{"direction"},
		Help: "Addresses that the target's name gained or lost.",
		Note: "Only where the host is a name. `direction` is `added` or `removed`.",
	},
	addressRequests: {
		Name: "steadyprobe_address_requests_total", Type: Counter, Scope: PerTarget, Labels: []string{"address"},
		Help: "Requests completed, whatever their outcome, by the address that they went to.",
		Note: "Only where `dns.per_address` is on, for the addresses that the target has now. `other` stands for those beyond the hundredth.",
	},
	addressFailures: {
		Name: "steadyprobe_address_failures_total", Type: Counter, Scope: PerTarget, Labels: []string{"address"},
		Help: "Requests that failed, by the address that they went to.",
		Note: "As steadyprobe_address_requests_total. A request that found no address, or expired, went to none.",
	},
	addressLatency: {
		Name: "steadyprobe_address_latency_seconds", Type: Histogram, Scope: PerTarget, Labels: []string{"address"},
		Help: "Time from a request's intended time to the last byte of its answer or its failure, by the address that it went to.",
		Note: "As steadyprobe_address_requests_total. Not in a closed loop.",
	},
	backendResponses: {
		Name: "steadyprobe_backend_responses_total", Type: Counter, Scope: PerTarget, Labels: []string{"backend"},
		Help: "Answers by the backend that gave them, as they tell.",
		Note: "Only where `backend` is set. A series appears with the first answer and goes when there was none for an hour; " +
			"`other` stands for those beyond `backend.most`.",
	},
	churnBaseline: {
		Name: "steadyprobe_churn_baseline_replicas", Type: Gauge, Scope: PerChurn,
		Help: "Replicas of the workload before the churn changed them, which it goes back to.",
		Note: "0 before the churn has begun.",
	},
	churnDesired: {
		Name: "steadyprobe_churn_desired_replicas", Type: Gauge, Scope: PerChurn,
		Help: "Replicas that the workload is asked to have, by whomever.",
		Note: "In a dry run, not those that the churn would ask for.",
	},
	churnReady: {
		Name: "steadyprobe_churn_ready_replicas", Type: Gauge, Scope: PerChurn,
		Help: "Replicas of the workload that are ready.",
	},
	churnEndpoints: {
		Name: "steadyprobe_churn_ready_endpoints", Type: Gauge, Scope: PerChurn,
		Help: "Ready endpoints that the door can send requests to.",
	},
	churnPhase: {
		Name: "steadyprobe_churn_phase", Type: Gauge, Scope: PerChurn, Labels: []string{"phase"},
		Help: "Whether the churn is in the phase.",
		Note: "1 for the present one of `settled`, `scaling_up` and `scaling_down`, which is also the `churn_phase` of the targets that are tied to it.",
	},
	churnState: {
		Name: "steadyprobe_churn_state", Type: Gauge, Scope: PerChurn, Labels: []string{"state"},
		Help: "Whether the churn is in the state.",
		Note: "1 for the present one of `running`, `dry_run`, `standby`, `paused` and `stopped`.",
	},
	churnSteps: {
		Name: "steadyprobe_churn_steps_total", Type: Counter, Scope: PerChurn, Labels: []string{"direction"},
		Help: "Steps of the plan whose scale call was accepted, by the direction in which they change the replicas.",
		Note: "`direction` is `up` or `down`. A dry run has none; a restore is none.",
	},
	churnErrors: {
		Name: "steadyprobe_churn_errors_total", Type: Counter, Scope: PerChurn, Labels: []string{"reason"},
		Help: "What kept the churn from its steps, by reason.",
		Note: "`reason` is `external_change`, `conflict`, `forbidden`, `unreachable`, `not_found`, `stuck`, `aborted`, `refused` or `error`.",
	},
	churnConvergence: {
		Name: "steadyprobe_churn_convergence_seconds", Type: Histogram, Scope: PerChurn, Labels: []string{"direction"},
		Help: "Time from the scale call of a step until the ready endpoints matched for good.",
		Note: "`direction` is `up` or `down`. A step counts once it has settled; one that never did is not observed.",
	},
	churnFirstResponse: {
		Name: "steadyprobe_churn_first_response_seconds", Type: Histogram, Scope: PerChurn,
		Help: "Time from the scale call of a step to more replicas until the first answer of a new backend.",
		Note: "Once for each step of which it is known: a target that names the churn has to tell backends apart (`backend`), and each of them " +
			"has to have answered before often enough, about 20 times.",
	},
	churnLastResponse: {
		Name: "steadyprobe_churn_last_response_seconds", Type: Histogram, Scope: PerChurn,
		Help: "Time from the scale call of a step to fewer replicas until the last answer of a removed backend.",
		Note: "Once for each step of which it is known, as with the first response; when the next step begins.",
	},
	churnFailover: {
		Name: "steadyprobe_churn_failover_seconds", Type: Histogram, Scope: PerChurn,
		Help: "Time from the stop of backends without drain until the last failure that followed.",
		Note: "Once for each step that kills, when the next one begins; 0 where nothing failed of requests enough. Not where other failures were about.",
	},
	churnLeader: {
		Name: "steadyprobe_churn_leader", Type: Gauge, Scope: PerChurn,
		Help: "Whether this process is the one that churns the workload.",
		Note: "Of several instances one is, see CHURN.md.",
	},
	churnRestorePending: {
		Name: "steadyprobe_churn_restore_pending", Type: Gauge, Scope: PerChurn,
		Help: "Whether the baseline is to be restored and is not yet, or is not known to be.",
	},
	churnLastBeat: {
		Name: "steadyprobe_churn_last_beat_timestamp_seconds", Type: Gauge, Scope: PerChurn,
		Help: "When the churn last looked at its workload, as seconds since the Unix epoch.",
		Note: "0 before it did. One that is behind belongs to a churn that hangs.",
	},
	discoveredTargets: {
		Name: "steadyprobe_discovered_targets", Type: Gauge, Scope: PerProcess, Labels: []string{"source"},
		Help: "Targets that a source of discovery has found and that are admitted.",
		Note: "Of all shards together. 0 where the source has none: then none of it is probed.",
	},
	heldTargets: {
		Name: "steadyprobe_discovery_held_targets", Type: Gauge, Scope: PerProcess, Labels: []string{"source"},
		Help: "Targets that are probed though their source has none any more, until keep_last has passed.",
		Note: "They are counted by steadyprobe_discovered_targets too.",
	},
	refusedTargets: {
		Name: "steadyprobe_discovery_refused_targets", Type: Gauge, Scope: PerProcess, Labels: []string{"reason", "source"},
		Help: "Targets that a source has found and that are not probed, by reason.",
		Note: "`reason` is `host`, `network`, `invalid`, `load`, `name`, `max_targets` or `limits`, see [DISCOVERY.md](DISCOVERY.md#what-is-refused).",
	},
	discoveryFailures: {
		Name: "steadyprobe_discovery_failures_total", Type: Counter, Scope: PerProcess, Labels: []string{"source"},
		Help: "Failures of a source: answers that could not be had or read, and empty ones while its last targets are held.",
	},
	selfLatency: {
		Name: "steadyprobe_self_latency_seconds", Type: Histogram, Scope: PerProcess,
		Help: "What the probe itself adds to every figure, measured through a local socket.",
	},
	shardInfo: {
		Name: "steadyprobe_shard_info", Type: Gauge, Scope: PerProcess, Labels: []string{"index", "shards"},
		Help: "Which of how many processes with the same configuration this is; always 1.",
		Note: "`index` counts from 0. A process that is alone is `0` of `1`. Two with the same index send the same share twice.",
	},
	saturated: {
		Name: "steadyprobe_saturated", Type: Gauge, Scope: PerProcess, Labels: []string{"resource"},
		Help: "Whether the probe lacks a resource, so that its figures are not to be trusted.",
		Note: "`resource` is `cpu`, `file_descriptors`, `ports` or `memory`.",
	},
	saturatedSeconds: {
		Name: "steadyprobe_saturated_seconds_total", Type: Counter, Scope: PerProcess, Labels: []string{"resource"},
		Help: "Time during which the probe lacked a resource.",
	},
	historyFailures: {
		Name: "steadyprobe_history_write_failures_total", Type: Counter, Scope: PerProcess,
		Help: "Attempts to write a target's past to the history on disk that failed.",
		Note: "Only with `--storage.path`. What could not be written is tried again for as long as it is remembered, five intervals.",
	},
	reloadSuccessful: {
		Name: "steadyprobe_config_last_reload_successful", Type: Gauge, Scope: PerProcess,
		Help: "Whether the last attempt to load the configuration succeeded.",
		Note: "0: it goes on with the one before.",
	},
	reloadTimestamp: {
		Name: "steadyprobe_config_last_reload_success_timestamp_seconds", Type: Gauge, Scope: PerProcess,
		Help: "When the configuration was last loaded, as seconds since the Unix epoch.",
	},
	buildInfo: {
		Name: "steadyprobe_build_info", Type: Gauge, Scope: PerProcess,
		Labels: []string{"branch", "goarch", "goos", "goversion", "revision", "tags", "version"},
		Help: "A metric with a constant '1' value labeled by version, revision, branch, goversion from which steadyprobe was built, " +
			"and the goos and goarch for the build.",
	},
}
