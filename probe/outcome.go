package probe

// Outcome is how a tick ended: success, or one failure of the closed list of
// stages and reasons. It is an index, so that recording it costs no text.
type Outcome uint8

// The outcomes. The list may be added to, names never change.
const (
	Success Outcome = iota
	ScheduleExpired
	ScheduleShutdown
	ResolveNotFound
	ResolveTimeout
	ResolveError
	ConnectRefused
	ConnectTimeout
	ConnectUnreachable
	ConnectReset
	ConnectLocalResource
	ConnectError
	ProxyTimeout
	ProxyError
	TLSTimeout
	TLSCertificate
	TLSAlert
	TLSProtocol
	TLSReset
	TLSEOF
	TLSError
	WriteTimeout
	WriteReset
	WriteStale
	WriteError
	ReadTimeout
	ReadReset
	ReadStale
	ReadEOF
	ReadTruncated
	ReadError
	ResponseStatus
	ResponseBody
	ResponseSize
	ResponseHeader
	ResponseProtocol

	// NumOutcomes is the number of outcomes, success included.
	NumOutcomes = int(iota)
)

// Stages of a failure.
const (
	StageSchedule = "schedule"
	StageResolve  = "resolve"
	StageConnect  = "connect"
	StageProxy    = "proxy"
	StageTLS      = "tls"
	StageWrite    = "write"
	StageRead     = "read"
	StageResponse = "response"
)

var outcomeNames = [NumOutcomes]struct{ stage, reason string }{
	Success:              {},
	ScheduleExpired:      {StageSchedule, "expired"},
	ScheduleShutdown:     {StageSchedule, "shutdown"},
	ResolveNotFound:      {StageResolve, "not_found"},
	ResolveTimeout:       {StageResolve, "timeout"},
	ResolveError:         {StageResolve, "error"},
	ConnectRefused:       {StageConnect, "refused"},
	ConnectTimeout:       {StageConnect, "timeout"},
	ConnectUnreachable:   {StageConnect, "unreachable"},
	ConnectReset:         {StageConnect, "reset"},
	ConnectLocalResource: {StageConnect, "local_resource"},
	ConnectError:         {StageConnect, "error"},
	ProxyTimeout:         {StageProxy, "timeout"},
	ProxyError:           {StageProxy, "error"},
	TLSTimeout:           {StageTLS, "timeout"},
	TLSCertificate:       {StageTLS, "certificate"},
	TLSAlert:             {StageTLS, "alert"},
	TLSProtocol:          {StageTLS, "protocol"},
	TLSReset:             {StageTLS, "reset"},
	TLSEOF:               {StageTLS, "eof"},
	TLSError:             {StageTLS, "error"},
	WriteTimeout:         {StageWrite, "timeout"},
	WriteReset:           {StageWrite, "reset"},
	WriteStale:           {StageWrite, "stale"},
	WriteError:           {StageWrite, "error"},
	ReadTimeout:          {StageRead, "timeout"},
	ReadReset:            {StageRead, "reset"},
	ReadStale:            {StageRead, "stale"},
	ReadEOF:              {StageRead, "eof"},
	ReadTruncated:        {StageRead, "truncated"},
	ReadError:            {StageRead, "error"},
	ResponseStatus:       {StageResponse, "status"},
	ResponseBody:         {StageResponse, "body"},
	ResponseSize:         {StageResponse, "size"},
	ResponseHeader:       {StageResponse, "header"},
	ResponseProtocol:     {StageResponse, "protocol"},
}

// Stage returns the failure_stage label, empty for a success.
func (o Outcome) Stage() string { return outcomeNames[o].stage }

// Reason returns the reason label, empty for a success.
func (o Outcome) Reason() string { return outcomeNames[o].reason }

// String returns "stage/reason", or "success".
func (o Outcome) String() string {
	if o == Success {
		return "success"
	}
	return o.Stage() + "/" + o.Reason()
}

// Slow reports whether the outcome belongs to the distribution that latency
// quantiles are taken from: successes, timeouts and expired ticks. A fast
// failure must not make an outage look fast.
func (o Outcome) Slow() bool {
	switch o {
	case Success, ScheduleExpired, ResolveTimeout, ConnectTimeout, ProxyTimeout, TLSTimeout, WriteTimeout, ReadTimeout:
		return true
	}
	return false
}

// Own reports whether the probe itself is to blame: it was told to end, or was
// short of ports or file descriptors.
func (o Outcome) Own() bool { return o == ScheduleShutdown || o == ConnectLocalResource }

// CloseReason says why a connection ended. The zero value means that it has
// not.
type CloseReason uint8

// The reasons for closing a connection.
const (
	NotClosed           CloseReason = iota
	ClosePeer                       // the door closed or reset it
	CloseAnnounced                  // the door said that it would close it
	CloseError                      // the answer left it unusable
	CloseTimeout                    // a request on it timed out
	CloseMaxAge                     // older than max_age
	CloseMaxRequests                // served max_requests
	CloseAddressRemoved             // its address left the name
	ClosePerRequest                 // reuse is off
	CloseReload                     // the configuration changed
	CloseShutdown                   // the prober stops

	// NumCloseReasons is the number of reasons, NotClosed included.
	NumCloseReasons = int(iota)
)

var closeReasonNames = [NumCloseReasons]string{
	"", "peer", "announced", "error", "timeout", "max_age", "max_requests",
	"address_removed", "per_request", "reload", "shutdown",
}

// String returns the reason label.
func (r CloseReason) String() string { return closeReasonNames[r] }
