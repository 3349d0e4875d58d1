// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	gatewayArea = "Gateways"
	// renewal is after how long the kubelet has renewed the token of a pod in any case: it does so when four fifths of the hour for which it
	// asks are over, and looks every minute or two.
	renewal = time.Hour
)

// stopped says which of Liqo's gateways do not run, whatever is said of their tunnels. On a broker its objects say so.
func (l *look) stopped(ctx context.Context) []Check {
	if l.setup.Broker {
		return nil
	}
	gateways, err := v1.Line{}.Gateways(ctx, l, liqoNamespace)
	if err != nil {
		return cannot(gatewayArea, "the Deployments of Liqo's gateways", err)
	}
	return checksOf(gatewayArea, overview.OfGateways(gateways))
}

// gateways looks whether the API server takes the tokens of Liqo's gateways to peers: a token is of the ServiceAccount that was there when
// it was made, and of no later one of that name. Liqo v1.2.0 deletes a ServiceAccount with the virtual node of the same name
// (ensureVirtualKubeletDeploymentAbsence in liqo/pkg/liqo-controller-manager/offloading/virtualnode-controller), and makes it again for the
// gateway that is called so (liqo/pkg/liqo-controller-manager/networking/external-network/utils/rbac.go).
func (l *look) gateways(ctx context.Context) []Check {
	pods, err := v1.Gateways(ctx, l)
	if err != nil {
		return cannot(gatewayArea, "the pods of Liqo's gateways", err)
	}
	tenants, err := l.tenants(ctx)
	if err != nil {
		return cannot(gatewayArea, "the peers", err)
	}

	// Each that runs, and of which ServiceAccounts nothing is known for lack of the right.
	var all []Check
	var unread []string
	var forbidden error
	taken := 0
	for i := range pods {
		pod := &pods[i]
		if podstate.Ended(pod) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		to := cmp.Or(tenants[pod.Namespace], "the peer of namespace "+pod.Namespace)
		found, err := l.gateway(ctx, pod, to)
		switch {
		case apierrors.IsForbidden(err):
			unread, forbidden = append(unread, accountOf(pod).String()), cmp.Or(forbidden, err)
		case err != nil:
			all = append(all, cannot(gatewayArea, "ServiceAccount "+accountOf(pod).String(), err)...)
		case found != nil:
			all = append(all, *found)
		default:
			taken++
		}
	}
	// Who lacks the right lacks it for all peers, mostly.
	if len(unread) > 0 {
		all = append(all, one(gatewayArea, Unknown,
			"It takes the right to get serviceaccounts in tenant namespaces, which Kubernetes' role view has",
			"Whether the API server takes the tokens of gateways is not known without their ServiceAccounts (%s): %v", some(unread), forbidden))
	}
	if taken > 0 {
		all = append(all, one(gatewayArea, OK, "", "%d pods of gateways have tokens of the ServiceAccounts that there are", taken))
	}
	return all
}

// gateway looks at a gateway's pod, and returns nil if all is well.
func (l *look) gateway(ctx context.Context, pod *corev1.Pod, to string) (*Check, error) {
	key := accountOf(pod)
	restart := fmt.Sprintf("kubectl --namespace %s rollout restart deployment %s", pod.Namespace, v1.GatewayDeployment(pod))
	is := fmt.Sprintf("Pod %s/%s, the gateway to %s,", pod.Namespace, pod.Name, to)
	var account corev1.ServiceAccount
	err := l.Get(ctx, key, &account)
	switch {
	case apierrors.IsNotFound(err):
		return new(one(gatewayArea, Problem, "Liqo makes it again: kubectl logs -n liqo deploy/liqo-controller-manager. Then: "+restart,
			"%s has no ServiceAccount %s any more: the API server refuses its token", is, key.Name)), nil
	case err != nil:
		return nil, err // The caller says what was read.
	}
	made := account.CreationTimestamp.Time
	// Both times are of the API server; only how long it is ago is of the clock here.
	if ago := l.now.Sub(made); pod.CreationTimestamp.Time.Before(made) && ago < renewal {
		return new(one(gatewayArea, Problem, restart+". The tunnel is interrupted for some seconds. How it comes to that: "+
			version.Document("docs/troubleshooting.md#new-pods-of-one-peer-are-not-reached"),
			"%s is older than its ServiceAccount %s, which was made again %s ago: the API server refuses its token until the kubelet renews it, "+
				"within an hour, and the gateway takes up no new routes until then, so that new pods are not reached",
			is, key.Name, max(0, ago).Round(time.Second))), nil
	}
	return nil, nil //nolint:nilnil // That there is nothing to say is an answer.
}

// accountOf returns the ServiceAccount of a pod: the admission of Kubernetes writes its name into each.
func accountOf(pod *corev1.Pod) client.ObjectKey {
	return client.ObjectKey{Namespace: pod.Namespace, Name: cmp.Or(pod.Spec.ServiceAccountName, "default")}
}
