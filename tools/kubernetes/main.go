// Command kubernetes is a Kubernetes control plane in one program, for the test
// bed of test/kubebed: the first argument, or the name by which it is called,
// says which part of it to be.
//
//	kubernetes etcd FOLDER CLIENT-URL PEER-URL
//	kubernetes kube-apiserver|kube-controller-manager|kube-scheduler|kube-proxy|kubectl FLAG...
//
// Nothing here is written anew: each part is that of Kubernetes itself, built
// from its module. One program takes a third of the room of six.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// parts returns the command of each part. Only the one that is asked for may be
// made: they share registries, which take no name twice.
func parts() map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"etcd":                    etcd,
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kube-proxy":              proxy.NewProxyCommand,
		"kubectl":                 func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() },
	}
}

func main() {
	name := filepath.Base(os.Args[0])
	part := parts()[name]
	if part == nil && len(os.Args) > 1 {
		name = os.Args[1]
		part = parts()[name]
		os.Args = os.Args[1:] // kubectl looks there for the names of plugins
	}
	if part == nil {
		fmt.Fprintf(os.Stderr, "running a part of Kubernetes: there is no %q; want etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy or kubectl\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(part()))
}
