package exporter

import (
	"cmp"
	"slices"
)

// Type is the type of a metric family.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Scope says what the series of a family are about.
type Scope string

// The scopes. Besides the labels that the catalogue lists, the families of a
// target carry the label target and the union of all user labels, and those of
// a churn the label churn.
const (
	PerTarget  Scope = "target"
	PerChurn   Scope = "churn"
	PerProcess Scope = "process"
)

// Metric describes one family of the public interface. Names, types and labels
// may be added to and are never changed.
type Metric struct {
	Name   string
	Type   Type
	Scope  Scope
	Labels []string // sorted, beyond those that the scope adds
	Help   string
	Note   string // for the documentation: when a series exists, how to read it
}

// Catalogue returns every family that this package itself exposes, sorted by
// name. The families go_* and process_* come from the usual collectors.
func Catalogue() []Metric {
	all := slices.Clone(catalogue[:])
	slices.SortFunc(all, byName)
	return all
}

// The labels that every family of a target, and of a churn, carries.
const (
	labelTarget = "target"
	labelChurn  = "churn"
)

// family is the index of a family in the catalogue.
type family int

const (
	requestsScheduled family = iota
	requests
	requestFailures
	withinObjective
	objectiveLatency
	objectiveRatio
	responses
	sentBytes
	receivedBytes
	inFlight
	backlog
	requestsPerSecond
	targetInfo
	latency
	serviceTime
	phaseTime
	latencyQuantile
	latencyClamped
	lateness
	handshakes
	handshakeTime
	certNotAfter
	certNotBefore
	certVerified
	ocspStapled
	connections
	connectionsLimit
	connectionsOpened
	connectionsClosed
	connectionFailures
	lookups
	lookupFailures
	targetAddresses
	addressChanges
	addressRequests
	addressFailures
	addressLatency
	backendResponses
	churnBaseline
	churnDesired
	churnReady
	churnEndpoints
	churnPhase
	churnState
	churnSteps
	churnErrors
	churnConvergence
	churnFirstResponse
	churnLastResponse
	churnFailover
	churnLeader
	churnRestorePending
	churnLastBeat
	discoveredTargets
	heldTargets
	refusedTargets
	discoveryFailures
	selfLatency
	shardInfo
	saturated
	saturatedSeconds
	historyFailures
	reloadSuccessful
	reloadTimestamp
	buildInfo

	numFamilies = int(iota)
)

func byName(a, b Metric) int { return cmp.Compare(a.Name, b.Name) }
