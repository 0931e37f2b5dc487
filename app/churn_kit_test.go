package app

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/steadyprobe/steadyprobe/web"
)

// churnOf returns a churn as the API shows it.
func churnOf(t *testing.T, r *daemonRun) (c web.Churn) {
	t.Helper()
	status, body := get(r.url + "/api/v1/churns")
	var answer struct{ Data []web.Churn }
	if err := json.Unmarshal([]byte(body), &answer); status != http.StatusOK || err != nil || len(answer.Data) != 1 {
		t.Fatalf("the churns are %d %s, %v", status, body, err)
	}
	return answer.Data[0]
}

// control asks for something over HTTP.
func control(t *testing.T, r *daemonRun, path string) (status int, body string) {
	t.Helper()
	answer, err := http.Post(r.url+"/api/v1/churns/"+path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var text bytes.Buffer
	_, _ = text.ReadFrom(answer.Body)
	http.DefaultClient.CloseIdleConnections()
	return answer.StatusCode, text.String()
}
