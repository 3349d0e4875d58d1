// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/test/golden"
)

func daemon(ready, wanted int32, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: install.BrokerNamespace, Name: install.BrokerName}}
	d.Spec.Replicas, d.Status.ReadyReplicas = &wanted, ready
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "broker", Image: "registry.example/liqo-broker:v0.1.0", Args: args}}
	return d
}

// gateway returns that of Liqo 0.9, of which one replica is wanted.
func gateway(ready int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqo.DefaultNamespace, Name: v09.GatewayName}}
	d.Spec.Replicas, d.Status.ReadyReplicas = new(int32(1)), ready
	return d
}

func policy(name string, conditions ...metav1.Condition) *v1alpha1.PlacementPolicy {
	p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}
	p.Spec.AppliesTo.Scope, p.Status.Conditions = v1alpha1.ScopeDefault, conditions
	return p
}

func resourceOffer(name string, fromPeer, accepted bool) *v09.ResourceOffer {
	o := &v09.ResourceOffer{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name}}
	if fromPeer {
		o.Labels = map[string]string{liqo.LabelReplicated: "true"}
	}
	if accepted {
		o.Status.Phase = "Accepted"
	}
	return o
}

// well is a broker with nothing to do.
func well() []client.Object {
	kept := slices.DeleteFunc(federation(), func(o client.Object) bool { return o.GetName() == "22222222-cccc" })
	decided := condition(v1alpha1.ConditionDecided, metav1.ConditionTrue, v1alpha1.ReasonDecided, "Decided for 2 consumers")
	decision := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: "cheapest.33333333-dddd"}, Policy: "cheapest"}
	decision.Consumer, decision.Chosen = "33333333-dddd", []v1alpha1.ChosenProvider{{ID: "11111111-aaaa", Name: "milan"}}
	return append(kept, daemon(2, 2, "--with-catalog", "--with-orchestrator", "--leader-elect"), policy("cheapest", decided), decision,
		resourceOffer("a", true, true), resourceOffer("b", true, true), resourceOffer("c", false, true))
}

// ill is a broker with something of each kind that is not as it should be.
func ill() []client.Object {
	not := metav1.ConditionFalse
	odd := provider("66666666-ffff", "bergen; reboot",
		condition(v1alpha1.ConditionReady, not, "SomethingNew", "Nobody knows"),
		condition(v1alpha1.ConditionObjectsRefused, metav1.ConditionTrue, v1alpha1.ReasonInvalidOffer, "The offer is of another cluster"))
	odd.Spec.Scheduling = v1alpha1.SchedulingDrained
	drained := provider("77777777-ffff", "lyon",
		condition(v1alpha1.ConditionReady, not, v1alpha1.ReasonDraining, "1 pod is left on the provider, which takes no new ones"),
		condition(v1alpha1.ConditionDraining, metav1.ConditionTrue, v1alpha1.ReasonPodsHeld,
			"1 pod is left on the provider; shop/web-1 stays: no other provider has room for it"))
	gone := provider("88888888-ffff", "nice",
		condition(v1alpha1.ConditionReady, not, v1alpha1.ReasonNotPeered, "The outgoing peering with the cluster is not established"))
	lacks := consumer("99999999-ffff", "bonn",
		condition(v1alpha1.ConditionReady, not, v1alpha1.ReasonNoProvider, "No provider has resources for the cluster"),
		condition(v1alpha1.ConditionReservationMet, not, v1alpha1.ReasonTooLittleFree, "The providers have less than what is reserved: 3 CPU"),
		condition(v1alpha1.ConditionAgentReporting, not, v1alpha1.ReasonSilent, "The cluster's agent was not heard for more than 5m0s"))
	bad := policy("bad", condition(v1alpha1.ConditionDecided, not, v1alpha1.ReasonNobodyPasses,
		"For consumer x: no provider passes the filters"),
		condition(v1alpha1.ConditionShadowed, metav1.ConditionTrue, v1alpha1.ReasonOtherPolicy,
			"Other policies of the same scope go before this one"),
		condition(v1alpha1.ConditionKPIsKnown, not, v1alpha1.ReasonUnknownKPI, "No provider has karbon"))
	query := &v1alpha1.ProviderQuery{ObjectMeta: metav1.ObjectMeta{Name: "latency"}}
	query.Status.Conditions = []metav1.Condition{
		condition(v1alpha1.ConditionMeasured, not, v1alpha1.ReasonNoPrometheus, "The broker was not told of a Prometheus"),
	}
	return append(federation(), daemon(0, 1, "--with-aggregator"), odd, drained, gone, provider("55555555-ffff", "new"), lacks, bad,
		policy("fresh"), query, resourceOffer("a", true, false))
}

func TestStatus(t *testing.T) {
	scaled := gateway(0)
	scaled.Spec.Replicas = new(int32(0))
	for name, c := range map[string]struct {
		objects []client.Object
		args    string
		healthy bool
	}{
		"status_well.txt":   {well(), "status", true},
		"status_well.yaml":  {well(), "status -o yaml", true},
		"status_ill.txt":    {ill(), "status", false},
		"status_absent.txt": {nil, "status", false},
		// All that Liqo says is well: only its gateway writes how tunnels are.
		"status_gateway.txt":       {append(well(), gateway(0)), "status", false},
		"status_gateway_ready.txt": {append(well(), gateway(1)), "status", true},
		// Nobody sees why in the log of a pod that is not there.
		"status_gateway_scaled.txt": {append(well(), scaled), "status", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := newCLI(t, c.objects...).run(t, c.args)
			if healthy := err == nil; healthy != c.healthy || !healthy && (!errors.Is(err, errUnhealthy) || program.ExitCode(err) != exitUnhealthy) {
				t.Errorf("error %v, healthy %t", err, c.healthy)
			}
			if strings.ContainsAny(out, "\x1b\u202e") {
				t.Errorf("control characters in %q", out)
			}
			golden.Check(t, name, out)
		})
	}
}

// TestGatewayUnseen asks for the status with no right to see Liqo's gateway, and with no answer about it.
func TestGatewayUnseen(t *testing.T) {
	resource := schema.GroupResource{Group: appsv1.GroupName, Resource: "deployments"}
	for _, tc := range []struct {
		err  error
		says string
	}{{apierrors.NewForbidden(resource, "", nil), ""}, {errors.New("timed out"), "get deployment liqo/liqo-gateway: timed out"}} {
		c := &cli{client: interceptor.NewClient(newFake(t, well()...), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if key.Name == v09.GatewayName {
					return tc.err
				}
				return c.Get(ctx, key, o, options...)
			},
		})}
		for _, line := range []string{"status", "providers"} {
			out, errOut, err := c.run(t, line)
			if (err == nil) != (tc.says == "") || err != nil && err.Error() != tc.says || strings.Contains(out+errOut, "Gateway") {
				t.Errorf("%s at %v: %v, %s%s", line, tc.err, err, out, errOut)
			}
		}
	}
}

// TestProvidersWithoutGateway lists providers while none can be reached, whatever their objects say: people are told, and programs get
// the objects.
func TestProvidersWithoutGateway(t *testing.T) {
	for line, told := range map[string]bool{"providers": true, "providers -o wide": true, "providers -o name": false, "consumers": false} {
		_, errOut, err := newCLI(t, append(well(), gateway(0))...).run(t, line)
		if err != nil || strings.HasPrefix(errOut, "0 of 1 replicas of Liqo's gateway are ready: no tunnel works") != told {
			t.Errorf("%s: %q, %v", line, errOut, err)
		}
	}
}

// TestStatusOfMany has more to say than a screen has room for.
func TestStatusOfMany(t *testing.T) {
	objects := well()
	for i := range 100 {
		objects = append(objects, provider(fmt.Sprintf("%08d-x", i), "many"))
	}
	out, _, err := newCLI(t, objects...).run(t, "status")
	if lines := strings.Count(out, "\n"); !errors.Is(err, errUnhealthy) || lines > 55 ||
		!strings.Contains(out, "and 80 more: kubectl liqo-broker status -o yaml\n") {
		t.Errorf("%d lines, %v:\n%s", lines, err, out)
	}
}
