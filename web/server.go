package web

import (
	"log"
	"log/slog"
	"net/http"
	"time"
)

// Limits of a client, so that a slow or hostile one holds neither a goroutine
// nor memory for long.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute // the longest scrape timeout that makes sense
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	maxBodyBytes      = 64 << 10 // nobody asks for anything with a body
)

// Server returns a server for the handler with limits set, that reports its
// errors as warnings. The caller starts it, shuts it down and waits for it.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         newClients(MaxClients).changed,
		ErrorLog:          log.New(&quietLog{logger: logger, message: "A client of the endpoint is in trouble"}, "", 0),
	}
}
