package faultdoor

import (
	"errors"
	"net"
	"testing"
	"time"
)

func TestFullDoorTimesOut(t *testing.T) {
	nc, err := net.DialTimeout("tcp", Full(t), 5*time.Millisecond)
	if err == nil {
		nc.Close()
		t.Fatal("connected")
	}
	if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() {
		t.Errorf("got %v", err)
	}
}
