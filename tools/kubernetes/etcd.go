package main

import (
	"context"
	"fmt"
	"net/url"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcd returns the command that serves etcd until it is interrupted.
func etcd() *cobra.Command {
	return &cobra.Command{
		Use:  "etcd FOLDER CLIENT-URL PEER-URL",
		Args: cobra.ExactArgs(3),
		RunE: func(_ *cobra.Command, args []string) error { return serveEtcd(args[0], args[1], args[2]) },
	}
}

// serveEtcd serves etcd of one member.
func serveEtcd(dir, client, peer string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	c := embed.NewConfig()
	c.Dir = dir
	c.LogLevel = "warn"
	// A crash of the machine ends the test bed, and waiting for disks only makes
	// it slow. A crash of the process loses nothing.
	c.UnsafeNoFsync = true
	clients, err := url.Parse(client)
	if err != nil {
		return fmt.Errorf("reading the client URL: %w", err)
	}
	peers, err := url.Parse(peer)
	if err != nil {
		return fmt.Errorf("reading the peer URL: %w", err)
	}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*clients}, []url.URL{*clients}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peers}, []url.URL{*peers}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	server, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("serving etcd: %w", err)
	}
}
