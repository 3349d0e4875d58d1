// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package guarded_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/guarded"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
)

// webhooks are those of the guard, with what counts while it does not run.
func webhooks() *admissionv1.ValidatingWebhookConfiguration {
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	configuration.Name = "liqo-broker-guard"
	for _, name := range []string{"allowance", "isolate", "guard-identities", "services", "mappings", "peers", "tunnels"} {
		policy := admissionv1.Fail
		if name == "peers" || name == "tunnels" {
			policy = admissionv1.Ignore
		}
		configuration.Webhooks = append(configuration.Webhooks,
			admissionv1.ValidatingWebhook{Name: name + ".brokering.liqo.io", FailurePolicy: &policy})
	}
	return configuration
}

// manager is Liqo's controller manager with a command line.
func manager(args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = liqo.DefaultNamespace, liqo.ManagerName
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "controller-manager", Command: []string{"/usr/bin/liqo-controller-manager"}, Args: args},
	}
	return d
}

// network is a pod of Liqo's network manager with what runs before and beside it.
func network(phase corev1.PodPhase, before, beside string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name = liqo.DefaultNamespace, "liqo-network-manager-1"
	p.Labels = map[string]string{"app.kubernetes.io/part-of": "liqo", "app.kubernetes.io/name": "network-manager"}
	p.Status.Phase = phase
	p.Spec.InitContainers, p.Spec.Containers = []corev1.Container{{Name: before}},
		[]corev1.Container{{Name: "network-manager"}, {Name: beside}}
	return p
}

const (
	ownKubelet = "--kubelet-image=registry.example.com/liqo-broker-vk:v1"
	plugin     = "--resource-plugin-address=liqo-broker.liqo-broker:6001"
	noIncoming = "--enable-incoming-peering=false"
)

var requests = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}

// refused is how the API server tells that a webhook refuses (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
func refused(message string) error {
	err := apierrors.NewForbidden(requests, "", nil)
	err.ErrStatus.Message = fmt.Sprintf("admission webhook %q denied the request: %s", "guard-identities.brokering.liqo.io", message)
	return err
}

// api is an API server that answers a request for a certificate with an error, and counts them.
type api struct {
	answer error
	asked  int
}

func (a *api) client(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return snapshottest.NewClient(t, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
			all := client.CreateOptions{}
			all.ApplyOptions(options)
			if _, ok := object.(*certificatesv1.CertificateSigningRequest); !ok || len(all.DryRun) == 0 {
				t.Errorf("creates %T, dry run %v", object, all.DryRun)
			}
			a.asked++
			return a.answer
		},
	}, objects...)
}

// TestCheck takes away what guards a cluster.
func TestCheck(t *testing.T) {
	without := func(name string) client.Object {
		all := webhooks()
		for i := range all.Webhooks {
			if all.Webhooks[i].Name == name {
				all.Webhooks = append(all.Webhooks[:i], all.Webhooks[i+1:]...)
				return all
			}
		}
		t.Fatalf("no webhook %s", name)
		return nil
	}
	with := func(name string, policy admissionv1.FailurePolicyType) client.Object {
		all := webhooks()
		for i := range all.Webhooks {
			if all.Webhooks[i].Name == name {
				all.Webhooks[i].FailurePolicy = &policy
			}
		}
		return all
	}
	sure, there := refused(liqo.ProbeRefused), manager(ownKubelet, plugin)
	cases := map[string]struct {
		reason  string
		objects []client.Object
		answer  error
		missing string // Part of the error; empty if the cluster is guarded.
		another bool   // It is not known whether the cluster is guarded.
	}{
		"Guarded":    {reason: "All is there.", objects: []client.Object{webhooks(), there}, answer: sure},
		"NoIncoming": {reason: "Nobody gets anything.", objects: []client.Object{webhooks(), manager(ownKubelet, noIncoming)}, answer: sure},
		"Stricter": {
			reason: "It may be stricter.", objects: []client.Object{with("peers.brokering.liqo.io", admissionv1.Fail), there}, answer: sure,
		},
		"Nothing": {
			reason: "The guard was not installed.", objects: []client.Object{there}, answer: sure,
			missing: "no ValidatingWebhookConfiguration liqo-broker-guard",
		},
		"NoIdentities": {
			objects: []client.Object{without("guard-identities.brokering.liqo.io"), there}, answer: sure, missing: "no webhook guard-identities",
		},
		"NoIsolate":  {objects: []client.Object{without("isolate.brokering.liqo.io"), there}, answer: sure, missing: "no webhook isolate"},
		"NoServices": {objects: []client.Object{without("services.brokering.liqo.io"), there}, answer: sure, missing: "no webhook services"},
		"NoMappings": {objects: []client.Object{without("mappings.brokering.liqo.io"), there}, answer: sure, missing: "no webhook mappings"},
		"NoPeers":    {objects: []client.Object{without("peers.brokering.liqo.io"), there}, answer: sure, missing: "no webhook peers"},
		"NoTunnels":  {objects: []client.Object{without("tunnels.brokering.liqo.io"), there}, answer: sure, missing: "no webhook tunnels"},
		"Open": {
			reason:  "Who stops the guard has all pods.",
			objects: []client.Object{with("isolate.brokering.liqo.io", admissionv1.Ignore), there}, answer: sure,
			missing: "isolate.brokering.liqo.io lets everything pass",
		},
		"LiqosKubelet": {
			objects: []client.Object{webhooks(), manager("--kubelet-image=ghcr.io/liqotech/virtual-kubelet:v0.9.4", plugin)}, answer: sure,
			missing: "--kubelet-image",
		},
		"NoPlugin": {objects: []client.Object{webhooks(), manager(ownKubelet)}, answer: sure, missing: "--resource-plugin-address"},
		"TwoAtOnce": {
			reason: "All is told at once.", objects: []client.Object{manager(plugin)}, answer: sure,
			missing: "liqo-broker-guard; liqo-controller-manager has",
		},
		"Admitted": {
			reason: "Who is named does not refuse.", objects: []client.Object{webhooks(), there}, missing: "nobody refuses an identity",
		},
		"Unreachable": {
			reason: "The guard does not run.", objects: []client.Object{webhooks(), there},
			answer:  apierrors.NewInternalError(errors.New(`failed calling webhook "guard-identities.brokering.liqo.io": connection refused`)),
			missing: "does not answer",
		},
		"ClosedIPAM": {objects: []client.Object{webhooks(), there, network(corev1.PodRunning, "shut-ipam", "ipam-guard")}, answer: sure},
		"OpenIPAM": {
			reason: "Nothing is beside it.", objects: []client.Object{webhooks(), there, network(corev1.PodRunning, "", "")}, answer: sure,
			missing: "Liqo's IPAM in pod liqo-network-manager-1 answers everybody",
		},
		"OpenAtFirst": {
			reason: "It answers before it is closed.", objects: []client.Object{webhooks(), there, network(corev1.PodRunning, "", "ipam-guard")},
			answer: sure, missing: "Liqo's IPAM in pod liqo-network-manager-1",
		},
		"OpenOnce": {reason: "It answers no more.", objects: []client.Object{webhooks(), there, network(corev1.PodFailed, "", "")}, answer: sure},
		"Roles": {
			reason: "Not the guard refuses.", objects: []client.Object{webhooks(), there},
			answer: apierrors.NewForbidden(requests, "", errors.New("no role")), missing: "no role", another: true,
		},
		"Others": {
			reason: "Another webhook refuses.", objects: []client.Object{webhooks(), there}, answer: refused("no"),
			missing: "denied the request: no", another: true,
		},
		"NoManager": {
			reason: "Liqo runs elsewhere.", objects: []client.Object{webhooks()}, answer: sure, missing: liqo.ManagerName, another: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &api{answer: tc.answer}
			err := guarded.New(server.client(t, tc.objects...), liqo.DefaultNamespace, clock.RealClock{}).Check(t.Context())
			if tc.missing == "" {
				if err != nil || server.asked != 1 {
					t.Fatalf("%s\n%v, asked %d times for an identity, want once", tc.reason, err, server.asked)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.missing) || errors.Is(err, peering.ErrUnguarded) == tc.another {
				t.Errorf("%s\n%v, want %q, ErrUnguarded %t", tc.reason, err, tc.missing, !tc.another)
			}
		})
	}
}

// TestAnswersCount asks again and again, while the answer changes.
func TestAnswersCount(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	server := &api{answer: refused(liqo.ProbeRefused)}
	c := guarded.New(server.client(t, webhooks(), manager(ownKubelet, plugin)), liqo.DefaultNamespace,
		clocktest.Func(func() time.Time { return now }))
	ask := func(step string, later time.Duration, guarded bool, asked int) {
		t.Helper()
		now = now.Add(later)
		if err := c.Check(t.Context()); (err == nil) != guarded || server.asked != asked {
			t.Errorf("%s: %v, the API server was asked %d times, want %d", step, err, server.asked, asked)
		}
	}
	ask("at first", 0, true, 1)
	ask("at once", 0, true, 1)
	server.answer = nil
	ask("soon", 29*time.Second, true, 1)
	ask("later", time.Second, false, 2)
	server.answer = refused(liqo.ProbeRefused)
	ask("while what was missing counts", 4*time.Second, false, 2)
	ask("when it does no more", time.Second, true, 3)
	ask("when the clock was set back", -time.Hour, true, 4)
}

// TestGivenUp asks for one that does not wait for the answer.
func TestGivenUp(t *testing.T) {
	server := &api{answer: context.Canceled}
	c := guarded.New(server.client(t, webhooks(), manager(ownKubelet, plugin)), liqo.DefaultNamespace, clock.RealClock{})
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Check(given); !errors.Is(err, context.Canceled) {
		t.Fatalf("Check() = %v", err)
	}
	server.answer = refused(liqo.ProbeRefused)
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("who has waited is told what was for another one: %v", err)
	}
}

// both is a side of each peering, and counts what it is asked.
type both struct {
	peering.Buyer
	peering.Seller

	asked []string
}

func (b *both) note(what string) { b.asked = append(b.asked, what) }

func (b *both) Peer(context.Context, peering.Credentials) error { b.note("peer"); return nil }

func (b *both) Drain(context.Context, cluster.ID) (int, error) { b.note("drain"); return 0, nil }

func (b *both) Unpeer(context.Context, cluster.ID) (bool, error) { b.note("unpeer"); return true, nil }

func (b *both) Withdraw(context.Context, cluster.ID) (bool, error) {
	b.note("withdraw")
	return true, nil
}

func (b *both) Issue(context.Context, cluster.Identity) (peering.Credentials, error) {
	b.note("issue")
	return peering.Credentials{}, nil
}

// TestSides begins and ends peerings with a guard and without.
func TestSides(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		guarded bool
		asked   string
	}{
		"Guarded":   {[]client.Object{webhooks(), manager(ownKubelet, plugin)}, true, "[peer issue drain unpeer withdraw]"},
		"Unguarded": {[]client.Object{manager(ownKubelet, plugin)}, false, "[drain unpeer withdraw]"},
	} {
		t.Run(name, func(t *testing.T) {
			server, sides := &api{answer: refused(liqo.ProbeRefused)}, &both{}
			c := guarded.New(server.client(t, tc.objects...), liqo.DefaultNamespace, clock.RealClock{})
			buyer, seller := guarded.NewBuyer(sides, c), guarded.NewSeller(sides, c)
			if err := buyer.Peer(t.Context(), peering.Credentials{}); (err == nil) != tc.guarded ||
				!tc.guarded && !errors.Is(err, peering.ErrUnguarded) {
				t.Errorf("Peer() = %v", err)
			}
			if _, err := seller.Issue(t.Context(), cluster.Identity{}); (err == nil) != tc.guarded ||
				!tc.guarded && !errors.Is(err, peering.ErrUnguarded) {
				t.Errorf("Issue() = %v", err)
			}
			_, drained := buyer.Drain(t.Context(), "c")
			_, parted := buyer.Unpeer(t.Context(), "c")
			_, withdrawn := seller.Withdraw(t.Context(), "c")
			if err := errors.Join(drained, parted, withdrawn); err != nil {
				t.Errorf("what has begun cannot be ended: %v", err)
			}
			if asked := fmt.Sprint(sides.asked); asked != tc.asked {
				t.Errorf("asked for %s, want %s", asked, tc.asked)
			}
		})
	}
}
