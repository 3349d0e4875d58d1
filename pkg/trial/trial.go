// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trial runs a workload at a broker for a moment, has a pod at home ask it over the network, and takes it away again: how the
// consumer's people see that it works, before they trust it with something.
//
// It does not know where the broker places pods, nor why.
package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/await"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/probe"
)

// MaxPods is how many pods a trial can have, which are asked beside their Service.
const MaxPods = probe.MaxTargets - 1

// Config is what a trial is to be. Unless it says otherwise, all must be there.
type Config struct {
	// Client reaches the consumer, on which the line Liqo of Liqo's versions runs.
	Client client.Client
	Liqo   line.Line
	// Own is the consumer, and Broker whose resources are tried.
	Own, Broker cluster.Identity
	// Namespace is made for the trial, and removed after it.
	Namespace string
	// Image has the program network-manager. Consumer and providers pull it.
	Image string
	// Pods is how many there are, up to MaxPods, and Asks how often each is asked.
	Pods, Asks int
	// Timeout is for how long each step may wait.
	Timeout time.Duration
	// Say tells people what is awaited, and when that changes.
	Say func(string)
}

// Result is how a trial ended.
type Result struct {
	// Pods are those of the trial, in order of their names.
	Pods []Tried `json:"pods"`
	// Service is how the Service answered that any of them may answer for; nil if none was there to be asked.
	Service *probe.Answer `json:"service,omitempty"`
	// Problems say what is not as it should be; none if all is well.
	Problems []string `json:"problems,omitempty"`
}

// Tried is one pod of a trial.
type Tried struct {
	overview.Placed

	// Answer is how it answered; nil if it never ran.
	Answer *probe.Answer `json:"answer,omitempty"`
}

// ErrTaken is that the namespace is there, and not by a trial.
var ErrTaken = errors.New("the namespace is not of a test")

// Run runs a trial. What it has made stays, so that people can look at it, until Clean. The error says what could not be tried at all; what
// was tried and failed is in the result.
func Run(ctx context.Context, cfg *Config) (*Result, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}

	// The namespace, and what leads from it to the broker.
	err := cfg.Client.Create(ctx, cfg.namespace())
	if apierrors.IsAlreadyExists(err) {
		cfg.Say("removing what an earlier test has left in namespace " + cfg.Namespace)
		if err := Clean(ctx, cfg); err != nil {
			return nil, err
		}
		err = cfg.Client.Create(ctx, cfg.namespace())
	}
	if err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", cfg.Namespace, err)
	}
	if err := cfg.Client.Create(ctx, cfg.offloading()); err != nil {
		return nil, fmt.Errorf("offload namespace %s: %w", cfg.Namespace, err)
	}
	if err := cfg.until(ctx, cfg.offloaded); err != nil {
		return nil, err
	}

	// The pods at the broker. Whatever of them is not ready in time is a result.
	for _, o := range []client.Object{cfg.service(), cfg.deployment()} {
		if err := cfg.Client.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("create %s: %w", o.GetName(), err)
		}
	}
	late := cfg.until(ctx, cfg.running)
	if ctx.Err() != nil {
		return nil, late
	}
	result, err := cfg.placed(ctx)
	if err != nil {
		return nil, err
	}
	if late != nil {
		result.Problems = append(result.Problems, late.Error())
	}
	return result, cfg.ask(ctx, result)
}

// check returns an error if the trial cannot be.
func (c *Config) check() error {
	switch {
	case c.Client == nil || c.Liqo == nil || c.Say == nil || c.Own.ID == "" || c.Broker.ID == "" || c.Namespace == "" || c.Image == "" ||
		c.Timeout <= 0:
		return errors.New("a trial needs a client, a line of Liqo, somebody to tell, who it is of, a namespace, an image and a time")
	case c.Pods < 1 || c.Pods > MaxPods:
		return fmt.Errorf("a test of %d pods: there must be from 1 to %d", c.Pods, MaxPods)
	case c.Asks < 1:
		return fmt.Errorf("a test that asks each pod %d times: it must be at least 1", c.Asks)
	}
	return nil
}

// Clean removes what a trial has made, and waits until it is gone. The error is ErrTaken if the namespace is of something else.
func Clean(ctx context.Context, cfg *Config) error {
	var ns corev1.Namespace
	err := cfg.Client.Get(ctx, client.ObjectKey{Name: cfg.Namespace}, &ns)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read namespace %s: %w", cfg.Namespace, err)
	case ns.Labels[liqo.LabelTrial] == "":
		return fmt.Errorf("namespace %s: %w: it has no label %s", cfg.Namespace, ErrTaken, liqo.LabelTrial)
	}
	uid := ns.UID
	err = cfg.Client.Delete(ctx, &ns, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove namespace %s: %w", cfg.Namespace, err)
	}
	return cfg.until(ctx, func(ctx context.Context) error {
		err := cfg.Client.Get(ctx, client.ObjectKey{Name: cfg.Namespace}, &ns)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("read namespace %s: %w", cfg.Namespace, err)
		default:
			return fmt.Errorf("namespace %s is still there", cfg.Namespace)
		}
	})
}

// until waits until something is so, and says what is awaited whenever that changes. The error says what was not so in time.
func (c *Config) until(ctx context.Context, look func(context.Context) error) error {
	return await.Until(ctx, c.Timeout, look, func(missing string) { c.Say("waiting: " + missing) })
}

// offloaded returns an error until the broker has the namespace.
func (c *Config) offloaded(ctx context.Context) error {
	var ns corev1.Namespace
	o := line.Empty(c.Liqo.Kinds().Offloading)
	key := client.ObjectKey{Namespace: c.Namespace, Name: liqo.OffloadingName}
	if err := errors.Join(c.Client.Get(ctx, client.ObjectKey{Name: c.Namespace}, &ns), c.Client.Get(ctx, key, o)); err != nil {
		return fmt.Errorf("look whether namespace %s is offloaded: %w", c.Namespace, err)
	}
	if is := c.Liqo.OffloadingOf(o); is.InForce(&ns) && c.Liqo.ReceptionOf(o, c.Broker).Present {
		return nil
	}
	return fmt.Errorf("the namespace is not at %s yet", c.Broker)
}

// servers returns the pods of the trial, in order of their names.
func (c *Config) servers(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingLabels(serverLabels())); err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", c.Namespace, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items, nil
}

// running returns an error until all pods are ready.
func (c *Config) running(ctx context.Context) error {
	pods, err := c.servers(ctx)
	if err != nil {
		return err
	}
	ready, why := 0, ""
	for i := range pods {
		if podstate.Ready(&pods[i]) && pods[i].Status.PodIP != "" {
			ready++
		} else if why == "" {
			why = waits(&pods[i])
		}
	}
	if ready == c.Pods && len(pods) == c.Pods {
		return nil
	}
	if why != "" {
		why = ": " + why
	}
	return fmt.Errorf("%d of %d pods are ready%s", ready, c.Pods, why)
}

// waits says what a pod waits for, if somebody has written that down; else nothing.
func waits(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if w := status.State.Waiting; w != nil && w.Reason != "" {
			return fmt.Sprintf("pod %s waits: %s %s", pod.Name, w.Reason, w.Message)
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s waits: %s", pod.Name, condition.Message)
		}
	}
	return ""
}

// placed returns where the pods are.
func (c *Config) placed(ctx context.Context) (*Result, error) {
	pods, err := c.servers(ctx)
	if err != nil {
		return nil, err
	}
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes, client.MatchingLabels{liqo.LabelNodeType: liqo.NodeTypeVirtual}); err != nil {
		return nil, fmt.Errorf("list the virtual nodes: %w", err)
	}
	reader := c.Liqo.Reader(c.Client, c.Own.ID)
	peers, err := reader.Peers(ctx)
	if err != nil {
		return nil, err
	}
	ways, err := reader.Ways(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]cluster.Identity, len(peers))
	for i := range peers {
		names[i] = peers[i].Identity
	}
	result := &Result{Pods: []Tried{}}
	for _, placed := range overview.OnConsumer(&ways, nodes.Items, pods, names) {
		result.Pods = append(result.Pods, Tried{Placed: placed})
	}
	return result, nil
}

// ask has a pod at home ask those that run, and puts their answers into the result.
func (c *Config) ask(ctx context.Context, result *Result) error {
	var targets []probe.Target
	for i := range result.Pods {
		if p := &result.Pods[i]; p.Ready && p.Address != "" {
			targets = append(targets, probe.Target{Pod: p.Pod, Address: addressOf(p.Address)})
		}
	}
	if len(targets) == 0 {
		return nil
	}
	targets = append(targets, probe.Target{Address: addressOf(serverName + "." + c.Namespace + ".svc")})
	if err := c.Client.Create(ctx, c.asker(targets)); err != nil {
		return fmt.Errorf("create pod %s: %w", askerName, err)
	}
	var answers []probe.Answer
	if err := c.until(ctx, func(ctx context.Context) (err error) {
		answers, err = c.answers(ctx, len(targets))
		return err
	}); err != nil {
		if ctx.Err() != nil {
			return err
		}
		result.Problems = append(result.Problems, "nobody could ask from here: "+err.Error())
		return nil
	}

	// The last answer is that of the Service; the others are those of pods, by their names.
	last := len(answers) - 1
	result.Service = &answers[last]
	for i := range result.Pods {
		at := slices.IndexFunc(answers[:last], func(a probe.Answer) bool { return a.Pod == result.Pods[i].Pod })
		if at >= 0 {
			result.Pods[i].Answer = &answers[at]
		}
	}
	for i := range answers {
		if a := &answers[i]; !a.Well() {
			what := "pod " + a.Pod
			if i == last {
				what = "the Service"
			}
			result.Problems = append(result.Problems,
				fmt.Sprintf("%s (%s) answered %d of %d requests: %s", what, a.Address, a.Answered, a.Asked, a.Reason))
		}
	}
	return nil
}

// answers returns what the pod at home has written; an error until it has ended.
func (c *Config) answers(ctx context.Context, want int) ([]probe.Answer, error) {
	var pod corev1.Pod
	key := client.ObjectKey{Namespace: c.Namespace, Name: askerName}
	if err := c.Client.Get(ctx, key, &pod); err != nil {
		return nil, fmt.Errorf("read pod %s: %w", key, err)
	}
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Terminated == nil {
		if why := waits(&pod); why != "" {
			return nil, errors.New(why)
		}
		return nil, errors.New("the pods are asked from here")
	}
	ended := pod.Status.ContainerStatuses[0].State.Terminated
	var answers []probe.Answer
	err := json.Unmarshal([]byte(ended.Message), &answers)
	if err != nil || len(answers) != want {
		return nil, fmt.Errorf("pod %s ended with code %d and wrote %q", key, ended.ExitCode, ended.Message)
	}
	return answers, nil
}

// Objects are what a trial makes, in order, but for the pod at home that is told where the others are.
func (c *Config) Objects() []client.Object {
	return []client.Object{c.namespace(), c.offloading(), c.service(), c.deployment()}
}

func (c *Config) namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace, Labels: map[string]string{liqo.LabelTrial: "true"}}}
}

func (c *Config) offloading() client.Object {
	return c.Liqo.NewOffloadingTo(c.Namespace, c.Own, c.Broker.ID)
}
