package bed

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steadyprobe/steadyprobe/internal/testbed"
)

// pod is one pod from when the kubelet saw it until it is deleted.
type pod struct {
	k       *kubelet
	object  *core.Pod // as it was first seen
	address netip.Addr

	once   sync.Once
	ending chan struct{} // closed when it is to end
	grace  time.Duration // that it has then
}

// end tells the pod to end. What it was told first counts, as with a kubelet.
func (p *pod) end(grace time.Duration) {
	p.once.Do(func() {
		p.grace = grace
		close(p.ending)
	})
}

// run runs the pod and returns when it is deleted, or ctx has ended: its process
// has ended too then.
func (p *pod) run(ctx context.Context) error {
	process, err := p.launch()
	if err != nil {
		return err
	}
	defer func() { _ = process.Kill() }() // whatever happened: it may be over
	if p.serves(ctx, process) {
		if err := p.becomeReady(ctx, process); err != nil {
			return err
		}
	}
	select {
	case <-p.ending:
	case <-process.Over():
		// It ended by itself, and is not started again.
		if err := p.report(ctx, core.PodFailed, false); err != nil {
			return err
		}
		select {
		case <-p.ending:
		case <-ctx.Done():
			return nil
		}
	case <-ctx.Done():
		return nil
	}
	// The next error is that it was killed, which is what a grace is for.
	_ = process.Stop(max(p.grace, time.Millisecond))
	return p.delete(ctx)
}

// launch starts the pod's process.
func (p *pod) launch() (*testbed.Process, error) {
	stop, err := p.annotation(stopAfter)
	if err != nil {
		return nil, err
	}
	answer, err := p.annotation(answerAfter)
	if err != nil {
		return nil, err
	}
	return testbed.Launch(testbed.ProgramOptions{
		Path: built(podProgram), Folder: p.k.b.dir, Output: filepath.Join(p.k.b.dir, "pods.log"), Urgent: true,
		Args: []string{
			"-listen=" + p.listen(), "-name=" + p.object.Name, "-stop-after=" + stop.String(), "-answer-after=" + answer.String(),
		},
	})
}

// listen returns where the pod serves.
func (p *pod) listen() string {
	port := podPort
	for _, c := range p.object.Spec.Containers {
		if len(c.Ports) > 0 {
			port = int(c.Ports[0].ContainerPort)
		}
	}
	return net.JoinHostPort(p.address.String(), strconv.Itoa(port))
}

// annotation returns the duration of an annotation, 0 where there is none.
func (p *pod) annotation(name string) (time.Duration, error) {
	text := p.object.Annotations[name]
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("reading the annotation %q: %w", name, err)
	}
	return d, nil
}

// serves waits until the process takes connections, and reports whether it does.
func (p *pod) serves(ctx context.Context, process *testbed.Process) bool {
	for {
		if c, err := net.Dial("tcp", p.listen()); err == nil {
			_ = c.Close()
			return true
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-process.Over():
			return false
		case <-p.ending:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// becomeReady reports that the pod runs, and that it is ready when it is.
func (p *pod) becomeReady(ctx context.Context, process *testbed.Process) error {
	never := p.object.Annotations[readyAfter] == never || p.k.b.neverReady(p.object.Namespace)
	var wait time.Duration
	if !never {
		var err error
		if wait, err = p.annotation(readyAfter); err != nil {
			return err
		}
	}
	if err := p.report(ctx, core.PodRunning, wait == 0 && !never); err != nil || wait == 0 || never {
		return err
	}
	select {
	case <-time.After(wait):
		return p.report(ctx, core.PodRunning, true)
	case <-process.Over():
	case <-p.ending:
	case <-ctx.Done():
	}
	return nil
}

// report writes the pod's status.
func (p *pod) report(ctx context.Context, phase core.PodPhase, ready bool) error {
	is, now := core.ConditionFalse, meta.Now()
	if ready {
		is = core.ConditionTrue
	}
	status := core.PodStatus{
		Phase: phase, PodIP: p.address.String(), PodIPs: []core.PodIP{{IP: p.address.String()}}, StartTime: &now,
		Conditions: []core.PodCondition{
			{Type: core.PodInitialized, Status: core.ConditionTrue, LastTransitionTime: now},
			{Type: core.ContainersReady, Status: is, LastTransitionTime: now},
			{Type: core.PodReady, Status: is, LastTransitionTime: now},
		},
	}
	for _, c := range p.object.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, core.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: ready,
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}},
		})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("writing the status of a pod: %w", err)
	}
	return insist(ctx, "reporting its status", func(ctx context.Context) error {
		_, err := p.k.b.Client.CoreV1().Pods(p.object.Namespace).
			Patch(ctx, p.object.Name, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "status")
		return unlessGone(err)
	})
}

// delete takes the pod away for good, unless another one has its name by now.
func (p *pod) delete(ctx context.Context) error {
	atOnce := int64(0)
	options := meta.DeleteOptions{GracePeriodSeconds: &atOnce, Preconditions: &meta.Preconditions{UID: &p.object.UID}}
	return insist(ctx, "deleting it", func(ctx context.Context) error {
		return unlessGone(p.k.b.Client.CoreV1().Pods(p.object.Namespace).Delete(ctx, p.object.Name, options))
	})
}

// unlessGone returns the error of a call about a pod, nil if the pod is gone.
func unlessGone(err error) error {
	if errors.IsNotFound(err) || errors.IsConflict(err) {
		return nil
	}
	return err
}
