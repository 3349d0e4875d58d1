// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// gatewayPod1 is a pod of the gateway to a peer, as old as that.
func gatewayPod1(id string, age time.Duration) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-" + id, Name: "gw-" + id + "-5d8f-x2k", CreationTimestamp: metav1.NewTime(now.Add(-age)),
		Labels: map[string]string{"networking.liqo.io/component": "gateway", "networking.liqo.io/gateway-name": id},
	}}
	p.Spec.ServiceAccountName, p.Status.Phase = id, corev1.PodRunning
	return p
}

// account1 is the ServiceAccount of that gateway, and of the virtual kubelet whose node is called like the peer, as old as that.
func account1(id string, age time.Duration) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-" + id, Name: id, CreationTimestamp: metav1.NewTime(now.Add(-age)),
	}}
}

// TestGateways1 looks at gateways whose ServiceAccounts are those with which they began, and at others.
func TestGateways1(t *testing.T) {
	const (
		before = "! Pod liqo-tenant-rome/gw-rome-5d8f-x2k, the gateway to rome (rome), is older than its ServiceAccount rome, " +
			"which was made again "
		then = " ago: the API server refuses its token until the kubelet renews it, within an hour, and the gateway takes up no new " +
			"routes until then, so that new pods are not reached\n" +
			"  kubectl --namespace liqo-tenant-rome rollout restart deployment gw-rome. The tunnel is interrupted for some " +
			"seconds. How it comes to that: "
		one = "  1 pods of gateways have tokens of the ServiceAccounts that there are\n"
	)
	after := then + version.Document("docs/troubleshooting.md#new-pods-of-one-peer-are-not-reached") + "\n"
	ended, leaving, stranger := gatewayPod1("rome", 3*time.Hour), gatewayPod1("rome", 3*time.Hour), gatewayPod1("rome", 3*time.Hour)
	ended.Status.Phase = corev1.PodFailed
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.NewTime(now)), []string{"example/kept"}
	stranger.Namespace = "shop"
	unnamed := gatewayPod1("rome", time.Hour)
	unnamed.Spec.ServiceAccountName = ""
	others := account1("rome", time.Minute)
	others.Name = "default"
	far := gatewayPod1("bern", time.Hour)
	for name, tc := range map[string]struct {
		reason  string
		objects []client.Object
		want    string // All that is said of gateways.
	}{
		"None": {"Without gateways there is nothing to say: peerings say that there is no tunnel.", nil, ""},
		"First": {
			"A gateway's ServiceAccount is there before it.",
			[]client.Object{gatewayPod1("rome", 10*time.Minute), account1("rome", 20*time.Minute)}, one,
		},
		"Together": {
			"Times are of whole seconds: both may come in one.",
			[]client.Object{gatewayPod1("rome", time.Minute), account1("rome", time.Minute)}, one,
		},
		"Again": {
			"The token is of a ServiceAccount that is gone.",
			[]client.Object{gatewayPod1("rome", 3*time.Hour), account1("rome", 5*time.Minute)}, before + "5m0s" + after,
		},
		"AgainLong": {
			"The kubelet may not have renewed the token yet.",
			[]client.Object{gatewayPod1("rome", 3*time.Hour), account1("rome", time.Hour-time.Second)}, before + "59m59s" + after,
		},
		"Renewed": {
			"The kubelet has renewed it, and nobody needs to do anything.",
			[]client.Object{gatewayPod1("rome", 3*time.Hour), account1("rome", time.Hour)}, one,
		},
		"SlowClock": {
			"The clock here is behind.", []client.Object{gatewayPod1("rome", time.Hour), account1("rome", -time.Minute)}, before + "0s" + after,
		},
		"Gone": {
			"The virtual node is gone, and the gateway's controller does not run.", []client.Object{gatewayPod1("rome", time.Hour)},
			"! Pod liqo-tenant-rome/gw-rome-5d8f-x2k, the gateway to rome (rome), has no ServiceAccount rome any more: the API server refuses its " +
				"token\n  Liqo makes it again: kubectl logs -n liqo deploy/liqo-controller-manager. Then: kubectl --namespace liqo-tenant-rome " +
				"rollout restart deployment gw-rome\n",
		},
		"Default": {
			"A pod without the name of one has the default one.", []client.Object{unnamed, account1("rome", 2*time.Hour), others},
			strings.Replace(before, "ServiceAccount rome", "ServiceAccount default", 1) + "1m0s" + after,
		},
		"Ended":   {"It uses no token any more.", []client.Object{ended, account1("rome", time.Minute)}, ""},
		"Leaving": {"Nor does one that is being replaced.", []client.Object{leaving, account1("rome", time.Minute)}, ""},
		"Stranger": {
			"A peer calls its own pods so.",
			[]client.Object{stranger, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, account1("rome", time.Minute)}, "",
		},
		"Forgotten": {
			"A peer whose record is gone has its namespace for a name.",
			append(peer1("bern", api.Connected)[1:2], far, account1("bern", time.Second)),
			strings.NewReplacer("the gateway to rome (rome)", "the gateway to the peer of namespace liqo-tenant-bern", "rome", "bern").
				Replace(before+"1s"+then) + after[len(then):],
		},
		"Both": {
			"One peer's does not hide another's.", slices.Concat(peer1("bern", api.Connected), []client.Object{
				far, account1("bern", 2*time.Hour), gatewayPod1("rome", 3*time.Hour), account1("rome", 5*time.Minute),
			}), before + "5m0s" + after + one,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster1(t, "v1.2.0", append(append(consumes1(), called1()), tc.objects...)...)
			d, err := Run(t.Context(), Config{Client: c, Now: now, Plugin: "v0.1.0"})
			if err != nil {
				t.Fatal(err)
			}
			if got := ofArea(d, gatewayArea); got != tc.want {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", tc.reason, got, tc.want)
			}
			if wrong := strings.Contains(tc.want, "!"); wrong && d.Healthy {
				t.Errorf("%s The cluster is called well.", tc.reason)
			}
		})
	}
}

// ofArea returns what a diagnosis says of an area as people read it, without its title.
func ofArea(d *Diagnosis, area string) string {
	_, after, _ := strings.Cut(d.String(), "\n"+area+"\n")
	text, _, _ := strings.Cut(after, "\n\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// TestGatewaysUnread has somebody look at gateways who may not read what it takes: that is said with the right, and nothing that is not
// known.
func TestGatewaysUnread(t *testing.T) {
	refused := errors.New("no role")
	forbidden := func(resource, name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, name, refused)
	}
	for name, tc := range map[string]struct {
		reason string
		get    func(account string) error
		list   error
		want   []string
	}{
		"Accounts": {
			"Who may not read ServiceAccounts is told which right it takes, once.",
			func(account string) error { return forbidden("serviceaccounts", account) }, nil,
			[]string{
				"? Whether the API server takes the tokens of gateways is not known without their ServiceAccounts (liqo-tenant-bern/bern, " +
					"liqo-tenant-rome/rome): serviceaccounts \"bern\" is forbidden: no role\n" +
					"  It takes the right to get serviceaccounts in tenant namespaces, which Kubernetes' role view has\n",
			},
		},
		"Broken": {
			"Another error may go away.", func(string) error { return errors.New("broken") }, nil,
			[]string{
				"? Cannot read ServiceAccount liqo-tenant-bern/bern: broken\n  Try again\n",
				"? Cannot read ServiceAccount liqo-tenant-rome/rome: broken\n  Try again\n",
			},
		},
		"Pods": {
			"Who may not read pods knows nothing of gateways.", nil, forbidden("pods", ""),
			[]string{"? Cannot read the pods of Liqo's gateways: list the gateways in namespace liqo-tenant-bern: pods is forbidden: no role\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(fakeCluster1(t, "v1.2.0", slices.Concat(consumes1(), peer1("bern", api.Connected), []client.Object{
				called1(), gatewayPod1("rome", 3*time.Hour), account1("rome", time.Minute),
				gatewayPod1("bern", time.Hour), account1("bern", time.Minute),
			})...), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if _, is := o.(*corev1.ServiceAccount); is && tc.get != nil {
						return tc.get(key.Name)
					}
					return c.Get(ctx, key, o, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, is := list.(*corev1.PodList); is && tc.list != nil {
						return tc.list
					}
					return c.List(ctx, list, options...)
				},
			})
			d, err := Run(t.Context(), Config{Client: c, Now: now, Plugin: "v0.1.0"})
			if err != nil {
				t.Fatal(err)
			}
			if got := ofArea(d, gatewayArea); !strings.HasPrefix(got, strings.Join(tc.want, "")) || strings.Contains(got, "!") ||
				strings.Contains(got, "tokens of the") {
				t.Errorf("%s\n%s", tc.reason, got)
			}
		})
	}
}
