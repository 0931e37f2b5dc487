package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"time"
)

// Config is a whole configuration, valid and with all defaults filled in. It
// must not be changed once it is loaded, and may then be read concurrently.
type Config struct {
	Limits  Limits   `yaml:"limits"`
	Metrics Metrics  `yaml:"metrics"`
	Targets []Target `yaml:"targets"` // in the order of the file, at least one where nothing is discovered
	Churns  []Churn  `yaml:"churns"`  // in the order of the file

	Profiles  []Profile   `yaml:"profiles"`  // in the order of the file
	Discovery []Discovery `yaml:"discovery"` // in the order of the file

	files []string // that it names
	sum   string   // of all that was read
}

// Limits keep a typing error from becoming an attack.
type Limits struct {
	MaxTotalRate    TotalRate `yaml:"max_total_rate"`    // sum of all rates, requests per second
	MaxConnections  int       `yaml:"max_connections"`   // sum of all connections
	AllowClosedLoop bool      `yaml:"allow_closed_loop"` // targets may have the rate "max"
	ChurnNamespaces []string  `yaml:"churn_namespaces"`  // of a cluster, whose workloads may be churned
}

// Metrics are the settings of the exporter.
type Metrics struct {
	Classic          bool    `yaml:"classic"`            // expose classic buckets
	Native           bool    `yaml:"native"`             // expose native buckets
	NativeSchema     int     `yaml:"native_schema"`      // 0 to 5: 2^schema buckets an octave
	NativeMaxBuckets int     `yaml:"native_max_buckets"` // most native buckets of a histogram
	Buckets          Buckets `yaml:"buckets"`
}

// Buckets are classic boundaries in seconds, ascending and without doubles,
// that are added to the built-in ones of a family.
type Buckets struct {
	Latency     []float64 `yaml:"latency"`
	ServiceTime []float64 `yaml:"service_time"`
	Handshake   []float64 `yaml:"handshake"`
	Phase       []float64 `yaml:"phase"`
	Lateness    []float64 `yaml:"lateness"` // of self latency too
	Convergence []float64 `yaml:"convergence"`
}

// Target is one door probed with one traffic profile. Printing or logging it
// shows no secret.
type Target struct {
	Name        string            `yaml:"name"`        // unique
	URL         URL               `yaml:"url"`         // its scheme says whether requests are HTTP or bare TCP
	Rate        Rate              `yaml:"rate"`        // requests per second, or "max"
	Connections int               `yaml:"connections"` // most at once, at least 1
	Labels      map[string]string `yaml:"labels"`      // never nil
	HTTP        HTTP              `yaml:"http"`
	ConnectTo   string            `yaml:"connect_to"` // HOST:PORT to dial instead of the URL's; may be empty
	DNS         DNS               `yaml:"dns"`
	Connection  Connection        `yaml:"connection"`
	TLS         TLS               `yaml:"tls"`
	Timeouts    Timeouts          `yaml:"timeouts"`
	Timeout     time.Duration     `yaml:"timeout"` // from begun time to the last byte, above 0
	Expect      Expect            `yaml:"expect"`
	Backend     Backend           `yaml:"backend"`
	TCP         TCP               `yaml:"tcp"`
	Objective   Objective         `yaml:"objective"`
	Backlog     time.Duration     `yaml:"backlog"`  // a tick that has waited this long fails as expired, above 0
	CatchUp     float64           `yaml:"catch_up"` // × rate; 0: no limit, else at least 1
	Pacing      string            `yaml:"pacing"`   // "precise", or "economy": ticks are sent once a millisecond
	Arrival     string            `yaml:"arrival"`  // "uniform": evenly spaced; "poisson": as independent users come
	Sharding    string            `yaml:"sharding"` // "rate": each of several processes sends a part; "targets": one of them sends it all
	Churn       string            `yaml:"churn"`    // name of the churn that its backend goes through; empty: none

	source string // that has discovered it
	allow  *Allow // addresses that it may lead to

	folder string // that relative paths of traffic files start at
}

// HTTP is what every request of a target says.
type HTTP struct {
	Version       string         `yaml:"version"` // "1.1"
	Method        string         `yaml:"method"`
	Host          string         `yaml:"host"` // of the Host header; empty: that of the URL
	Headers       Headers        `yaml:"headers"`
	BasicAuth     *BasicAuth     `yaml:"basic_auth"`    // nil: none
	Authorization *Authorization `yaml:"authorization"` // nil: none
	Body          Secret         `yaml:"body"`
	BodyFile      string         `yaml:"body_file"`

	content Secret // of BodyFile
}

// Content returns the body to send, whether it was written or is in a file.
func (h *HTTP) Content() Secret {
	if h.BodyFile != "" {
		return h.content
	}
	return h.Body
}

// Headers are header fields by name, as written. No two names differ in case
// only. Never nil once loaded.
type Headers map[string]Header

// Header is the values of one header field, each of which is sent as a line of
// its own: those of Values, then of Secrets, then of Files.
type Header struct {
	Values  []Secret `yaml:"values"`
	Secrets []Secret `yaml:"secrets"`
	Files   []string `yaml:"files"`

	contents []Secret // of Files
}

// BasicAuth is a user name and a password for basic authentication.
type BasicAuth struct {
	Username     Secret `yaml:"username"`
	UsernameFile string `yaml:"username_file"`
	Password     Secret `yaml:"password"`
	PasswordFile string `yaml:"password_file"`

	username, password Secret // of the files
}

// Authorization is the value of the Authorization header.
type Authorization struct {
	Type            string `yaml:"type"` // empty: Bearer
	Credentials     Secret `yaml:"credentials"`
	CredentialsFile string `yaml:"credentials_file"`

	credentials Secret // of CredentialsFile
}

// DNS says how the door's name is looked up. It means nothing where the
// address to dial is written as an IP address.
type DNS struct {
	Refresh    time.Duration `yaml:"refresh"`     // a lookup is used this long
	Family     string        `yaml:"family"`      // "any", "ipv4", "ipv6", "prefer_ipv4" or "prefer_ipv6"
	Spread     string        `yaml:"spread"`      // "all": connections are dealt over all addresses; "first": all go to the first
	Server     string        `yaml:"server"`      // IP:PORT to ask, see ServerAddress; empty: as the system does
	PerAddress bool          `yaml:"per_address"` // series for each address
}

// ServerAddress returns the address of the server to ask, which is not valid
// where the system says which to ask.
func (d DNS) ServerAddress() netip.AddrPort { return addressOf(d.Server) }

// Connection says how long connections are kept, and what begins them.
type Connection struct {
	Reuse         bool          `yaml:"reuse"` // false: a new connection per request, always so for bare TCP
	Warm          bool          `yaml:"warm"`  // open all connections before the first tick
	MaxAge        time.Duration `yaml:"max_age"`
	MaxRequests   uint64        `yaml:"max_requests"`   // per connection; 0: no limit
	ProxyProtocol string        `yaml:"proxy_protocol"` // header that is sent first: "none", "v1" or "v2"
	ProxySource   string        `yaml:"proxy_source"`   // IP:PORT that the header says, see SourceAddress; empty: the connection's own
}

// SourceAddress returns the address that the PROXY header says of the client,
// which is not valid where it says that of the connection.
func (c Connection) SourceAddress() netip.AddrPort { return addressOf(c.ProxySource) }

// TLS says how a door whose URL begins with https or tls is spoken to.
type TLS struct {
	MinVersion         TLSVersion    `yaml:"min_version"`
	MaxVersion         TLSVersion    `yaml:"max_version"` // 0: the newest
	ServerName         string        `yaml:"server_name"` // empty: the host of the URL
	CA                 string        `yaml:"ca"`          // PEM, instead of the file
	CAFile             string        `yaml:"ca_file"`     // both empty: the system's authorities
	CertFile           string        `yaml:"cert_file"`
	KeyFile            string        `yaml:"key_file"`
	InsecureSkipVerify bool          `yaml:"insecure_skip_verify"`
	Resumption         bool          `yaml:"resumption"`
	Ciphers            []CipherSuite `yaml:"ciphers"` // offered up to TLS 1.2; empty: those of Go
	Groups             []Group       `yaml:"groups"`  // offered for the key exchange; empty: those of Go

	folder        string // that relative paths start at
	ca, cert, key Secret // what the files hold, PEM
}

// Timeouts are limits inside the timeout; 0 is none.
type Timeouts struct {
	Connect  time.Duration `yaml:"connect"`
	TLS      time.Duration `yaml:"tls"`
	Response time.Duration `yaml:"response"` // from sending the request
}

// Expect says which answers are a success: those that are all of it.
type Expect struct {
	Status       []string       `yaml:"status"`        // such as "200" or "2xx", at least one
	MaxBody      Size           `yaml:"max_body"`      // of an answer over bare TCP too
	Body         Pattern        `yaml:"body"`          // that the body matches; zero: any
	BodyContains string         `yaml:"body_contains"` // text that is in the body; empty: any
	BodySize     *Size          `yaml:"body_size"`     // of the body, exactly; 0 is an empty one, nil any
	BodySHA256   string         `yaml:"body_sha256"`   // of the body, 64 digits in lower case, see BodySum; empty: any
	Headers      HeaderPatterns `yaml:"headers"`       // never nil once loaded
}

// HeaderPatterns are what header fields of an answer must match, by name, as
// written: at least one value of each. No two names differ in case only.
type HeaderPatterns map[string]Pattern

// BodySum returns the SHA-256 sum that the body must have, and whether it must
// have one.
func (e *Expect) BodySum() (sum [sha256.Size]byte, ok bool) {
	n, err := hex.Decode(sum[:], []byte(e.BodySHA256[:min(len(e.BodySHA256), 2*len(sum))]))
	return sum, err == nil && n == len(sum)
}

// Accepts reports whether an answer with this status is a success.
func (e Expect) Accepts(code int) bool {
	for _, status := range e.Status {
		if low, high, ok := statusRange(status); ok && low <= code && code <= high {
			return true
		}
	}
	return false
}

// Backend says how an answer tells which backend gave it. At most one of
// Header and Body is there.
type Backend struct {
	Header string  `yaml:"header"` // name of a header field whose value is the backend's name
	Body   Pattern `yaml:"body"`   // whose one capture group is the backend's name
	Most   int     `yaml:"most"`   // backends that are counted apart, at least 1; the rest are one
}

// TCP is what happens on a connection to a door whose URL begins with tcp or
// tls, after it is open: nothing where all is empty.
type TCP struct {
	Send     Secret  `yaml:"send"`
	SendFile string  `yaml:"send_file"`
	Expect   Pattern `yaml:"expect"` // that what the door says must match; zero: it is not listened to

	content Secret // of SendFile
}

// Content returns what to send, whether it was written or is in a file.
func (t *TCP) Content() Secret {
	if t.SendFile != "" {
		return t.content
	}
	return t.Send
}

// Objective is what a user of the door is promised.
type Objective struct {
	Latency time.Duration `yaml:"latency,omitempty"` // 0: none
	Ratio   float64       `yaml:"ratio,omitempty"`   // of all requests, above 0 and below 1; 0: none
}
