package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/steadyprobe/steadyprobe/config"
)

// controlPrefix begins the labels that control a target and that Prometheus
// does not know.
const controlPrefix = "__probe_"

// The labels that control a target, besides __address__, __scheme__ and
// __param_NAME.
const (
	labelName        = controlPrefix + "name__"
	labelPath        = controlPrefix + "path__"
	labelRate        = controlPrefix + "rate__"
	labelConnections = controlPrefix + "connections__"
	labelTimeout     = controlPrefix + "timeout__"
	labelHost        = controlPrefix + "host__"
	labelServerName  = controlPrefix + "server_name__"
	labelConnectTo   = controlPrefix + "connect_to__"
)

// Controls returns the names of the labels that control a target, sorted.
func Controls() []string {
	return []string{labelConnectTo, labelConnections, labelHost, labelName, labelPath, labelRate, labelServerName, labelTimeout}
}

func checkControl(name string) error {
	if slices.Contains(Controls(), name) {
		return nil
	}
	return fmt.Errorf("%s controls nothing; write one of %s", name, strings.Join(Controls(), ", "))
}

// Bounds of what labels may hold, so that a source cannot make the metrics of
// all targets large.
const (
	mostLabels = 32 // names that the targets of a source have together
	mostValue  = 1024
)

// reader turns the labels of a target into what is known of it.
type reader struct {
	entry *entry
	found config.Discovered
}

// read returns what the labels say of a target, or why it is refused.
func (e *entry) read(l labels.Labels) (config.Discovered, *refusal) {
	r := &reader{entry: e, found: config.Discovered{Source: e.config, Labels: map[string]string{}}}
	for _, step := range []func(labels.Labels) *refusal{r.unknown, r.url, r.load, r.names, r.labels} {
		if why := step(l); why != nil {
			return r.found, why
		}
	}
	return r.found, nil
}

func (r *reader) unknown(l labels.Labels) (why *refusal) {
	l.Range(func(label labels.Label) {
		if strings.HasPrefix(label.Name, controlPrefix) && checkControl(label.Name) != nil && why == nil {
			why = refuse(Invalid, checkControl(label.Name).Error())
		}
	})
	return why
}

// url reads where the target is and what is asked for.
func (r *reader) url(l labels.Labels) *refusal {
	scheme, address, path := l.Get(model.SchemeLabel), l.Get(model.AddressLabel), l.Get(labelPath)
	if scheme == "" {
		scheme = "http"
	}
	if address == "" {
		return refuse(Invalid, "it has no __address__")
	}
	if _, err := netip.ParseAddr(address); err == nil && strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	query := parameters(l)
	if scheme == "http" || scheme == "https" {
		if path == "" {
			path = "/"
		}
		if path[0] != '/' || strings.ContainsAny(path, "?#") {
			return refuse(Invalid, labelPath+" is not a path; it must begin with / and have neither ? nor #: write parameters into __param_NAME")
		}
	}
	text := scheme + "://" + address + path
	if query != "" {
		text += "?" + query
	}
	u, err := config.ParseURL(text)
	if err != nil {
		return refuse(Invalid, "its URL "+err.Error())
	}
	if _, _, user := u.User(); user || strings.ContainsAny(address, "/@?#") {
		return refuse(Invalid, "__address__ is not HOST or HOST:PORT")
	}
	r.found.URL, r.found.Name = u, l.Get(labelName)
	if r.found.Name == "" {
		r.found.Name = r.entry.config.TargetName(u)
	}
	return nil
}

// parameters returns the query that the labels __param_NAME make.
func parameters(l labels.Labels) string {
	values := url.Values{}
	l.Range(func(label labels.Label) {
		if name, ok := strings.CutPrefix(label.Name, model.ParamLabelPrefix); ok && name != "" {
			values.Set(name, label.Value)
		}
	})
	return values.Encode()
}

// load reads how much is sent, which labels may lower, and raise as far as is
// allowed.
func (r *reader) load(l labels.Labels) *refusal {
	allow, profile := &r.entry.config.Allow, r.entry.profile
	if text := l.Get(labelRate); text != "" {
		most := profile.Rate
		if !allow.MaxRate.IsZero() {
			most = allow.MaxRate
		}
		rate, err := config.ParseRate(text)
		switch {
		case err != nil:
			return refuse(Invalid, labelRate+": "+err.Error())
		case rate.Max():
			return refuse(Load, labelRate+" asks for a closed loop, which no discovered target gets")
		case rate.Rat().Cmp(most.Rat()) > 0:
			return refuse(Load, fmt.Sprintf("%s asks for %s requests/s, above the %s that are allowed (allow.max_rate, else the profile's rate)", labelRate, rate, most))
		}
		r.found.Rate = rate
	}
	if text := l.Get(labelConnections); text != "" {
		most := cmp.Or(allow.MaxConnections, profile.Connections)
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < 1:
			return refuse(Invalid, labelConnections+" is not a number of connections, 1 or more")
		case n > most:
			return refuse(Load, fmt.Sprintf("%s asks for %d connections, above the %d that are allowed (allow.max_connections, else the profile's connections)", labelConnections, n, most))
		}
		r.found.Connections = n
	}
	if text := l.Get(labelTimeout); text != "" {
		d, err := model.ParseDuration(text)
		if err != nil || d <= 0 {
			return refuse(Invalid, labelTimeout+" is not a duration such as 5s")
		}
		r.found.Timeout = time.Duration(d)
	}
	return nil
}

// names reads whom the target is said to be, and checks that each of the names
// may be reached.
func (r *reader) names(l labels.Labels) *refusal {
	r.found.Host, r.found.ServerName, r.found.ConnectTo = l.Get(labelHost), l.Get(labelServerName), l.Get(labelConnectTo)
	allow := &r.entry.config.Allow
	for _, n := range []struct{ label, name string }{
		{model.AddressLabel, r.found.URL.Hostname()},
		{labelHost, hostOf(r.found.Host)},
		{labelServerName, r.found.ServerName},
		{labelConnectTo, hostOf(r.found.ConnectTo)},
	} {
		if n.name == "" || allow.AdmitsName(n.name) {
			continue
		}
		if _, err := netip.ParseAddr(n.name); err == nil {
			return refuse(Network, n.label+" is an address outside of allow.networks")
		}
		return refuse(Host, n.label+" is a name outside of allow.hosts")
	}
	// One that the profile says is the owner's own, and must be listed all the same.
	if address, err := netip.ParseAddr(r.entry.dialHost(&r.found)); err == nil && !allow.AdmitsAddress(address) {
		return refuse(Network, "connect_to of the profile is an address outside of allow.networks")
	}
	return nil
}

// dialHost returns the name or the address that is connected to.
func (e *entry) dialHost(d *config.Discovered) string {
	if to := cmp.Or(d.ConnectTo, e.profile.ConnectTo); to != "" {
		return hostOf(to)
	}
	return d.URL.Hostname()
}

// lookedUp returns the name that is to be looked up, empty where the address is
// known.
func (e *entry) lookedUp(d *config.Discovered) string {
	host := e.dialHost(d)
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	return host
}

// hostOf returns HOST of HOST or HOST:PORT.
func hostOf(text string) string {
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return strings.Trim(text, "[]")
}

// labels reads the labels of the target's metrics.
func (r *reader) labels(l labels.Labels) (why *refusal) {
	l.Range(func(label labels.Label) {
		if strings.HasPrefix(label.Name, model.ReservedLabelPrefix) {
			return
		}
		r.found.Labels[label.Name] = label.Value
		if len(label.Value) > mostValue {
			why = refuse(Invalid, fmt.Sprintf("the label %s is longer than %d bytes", label.Name, mostValue))
		}
	})
	if len(r.found.Labels) > mostLabels {
		return refuse(Invalid, fmt.Sprintf("it has more than %d labels; remove some by labeldrop", mostLabels))
	}
	return why
}

// key returns the same text for two targets of which the same is known.
func key(d *config.Discovered) string {
	var b strings.Builder
	for _, text := range []string{d.Name, d.URL.Reveal().String(), d.Rate.String(), strconv.Itoa(d.Connections), d.Timeout.String(), d.Host, d.ServerName, d.ConnectTo} {
		b.WriteString(strconv.Quote(text))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Labels)) {
		b.WriteString(strconv.Quote(name) + strconv.Quote(d.Labels[name]))
	}
	return b.String()
}

// invalid returns the first of the problems of a target that cannot be.
func invalid(err error) *refusal {
	if all, ok := errors.AsType[*config.Errors](err); ok && len(all.Problems) > 0 {
		err = all.Problems[0]
	}
	return refuse(Invalid, err.Error())
}
