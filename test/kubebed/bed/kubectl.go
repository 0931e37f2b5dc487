package bed

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig writes a kubeconfig and returns its path.
func (b *Bed) kubeconfig(name, server string, authority []byte, token, namespace string) string {
	b.t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["bed"] = &clientcmdapi.Cluster{Server: "https://" + server, CertificateAuthorityData: authority}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["bed"] = &clientcmdapi.Context{Cluster: "bed", AuthInfo: name, Namespace: namespace}
	c.CurrentContext = "bed"
	path := b.file(strings.NewReplacer("/", "_", ":", "_").Replace(b.unique(name)) + ".kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		b.t.Fatalf("writing a kubeconfig: %v", err)
	}
	return path
}

// rest returns what a kubeconfig says, without a limit of requests per second.
func (b *Bed) rest(kubeconfig string) *rest.Config {
	b.t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		b.t.Fatalf("reading a kubeconfig: %v", err)
	}
	c.QPS = -1
	return c
}

// Kubeconfig makes a ServiceAccount, unless there is one, and returns the path
// of a kubeconfig that is it, good for an hour. Its context has the account's
// namespace.
func (b *Bed) Kubeconfig(namespace, account string) string {
	b.t.Helper()
	ctx, cancel := b.context()
	defer cancel()
	accounts := b.Client.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(ctx, &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: account}}, meta.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		b.t.Fatalf("making the ServiceAccount %q: %v", account, err)
	}
	seconds := int64(3600)
	token, err := accounts.CreateToken(ctx, account,
		&authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}, meta.CreateOptions{})
	if err != nil {
		b.t.Fatalf("making a token of the ServiceAccount %q: %v", account, err)
	}
	return b.kubeconfig(namespace+"_"+account, b.server, b.authority, token.Status.Token, namespace)
}

// Kubectl runs kubectl, which may do everything, and returns what it printed.
func (b *Bed) Kubectl(args ...string) string {
	b.t.Helper()
	out, err := b.TryKubectl(b.Admin, "", args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// Apply applies manifests with kubectl, which may do everything.
func (b *Bed) Apply(manifests string) {
	b.t.Helper()
	if _, err := b.TryKubectl(b.Admin, manifests, "apply", "-f", "-"); err != nil {
		b.t.Fatal(err)
	}
}

// TryKubectl runs kubectl as somebody and returns what it printed, also where
// it failed. It may be called from any goroutine.
func (b *Bed) TryKubectl(kubeconfig, stdin string, args ...string) (string, error) {
	ctx, cancel := b.context()
	defer cancel()
	cmd := exec.CommandContext(ctx, b.program, append([]string{"kubectl", "--kubeconfig=" + kubeconfig, "--cache-dir=" + filepath.Join(b.dir, "kubectl")}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("running kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}
