package testbed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"time"
)

// AlertmanagerServer is a running Alertmanager.
type AlertmanagerServer struct {
	Address string // "127.0.0.1:port"

	*server
	client *http.Client
}

// Alertmanager starts an Alertmanager with a configuration file's text, alone
// and not in a cluster. It ends with the test, and is ready on return. It is
// not the machine's own but the one of tools/alertmanager. To be started
// before the Prometheus that sends to it, which otherwise loses what it sent
// before.
func Alertmanager(t Owner, configuration string) *AlertmanagerServer {
	t.Helper()
	a := &AlertmanagerServer{
		Address: freeAddress(t),
		server:  newServer(t, Tool(t, "alertmanager", "alertmanager")),
		client:  questions(),
	}
	a.args = []string{
		"--config.file=" + a.write("alertmanager.yml", configuration),
		"--storage.path=" + a.path("data"),
		"--web.listen-address=" + a.Address,
		"--cluster.listen-address=",
	}
	a.start(func() bool {
		code, _, err := fetch(a.client, "http://"+a.Address+"/-/ready")
		return err == nil && code == http.StatusOK
	})
	return a
}

// HeldAlert is an alert that an Alertmanager holds, see its API, version 2.
type HeldAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	Fingerprint string            `json:"fingerprint"` // of the labels
	Status      struct {
		State       string   `json:"state"`       // unprocessed, active or suppressed
		InhibitedBy []string `json:"inhibitedBy"` // fingerprints of the alerts that inhibit it
	} `json:"status"`
}

// Name returns the name of the alert.
func (a HeldAlert) Name() string { return a.Labels["alertname"] }

// Alerts returns the alerts that have not resolved, inhibited ones included.
func (a *AlertmanagerServer) Alerts() []HeldAlert {
	a.t.Helper()
	code, text, err := fetch(a.client, "http://"+a.Address+"/api/v2/alerts")
	if err != nil || code != http.StatusOK {
		a.t.Fatalf("asking Alertmanager for its alerts: status %d, %v: %s", code, err, text)
	}
	var alerts []HeldAlert
	if err := json.Unmarshal([]byte(text), &alerts); err != nil {
		a.t.Fatalf("reading the alerts of Alertmanager: %v: %s", err, text)
	}
	return alerts
}

// Amtool runs amtool and returns what it printed; the error tells that it had
// a complaint, or how it could not be run.
func Amtool(t Owner, args ...string) (string, error) {
	t.Helper()
	out, err := exec.Command(Tool(t, "alertmanager", "amtool"), args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("running amtool: %w", err)
	}
	return string(out), err
}
