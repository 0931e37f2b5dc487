package faultdoor_test

import (
	"net"
	"testing"
	"time"

	. "github.com/steadyprobe/steadyprobe/internal/faultdoor"
)

func TestFullDoorTimesOut(t *testing.T) {
	nc, err := net.DialTimeout("tcp", Full(t), 5*time.Millisecond)
	if err == nil {
		nc.Close()
		t.Fatal("connected")
	}
	if ne, ok := err.(net.Error); !ok || !ne.Timeout() {
		t.Errorf("got %v", err)
	}
}
