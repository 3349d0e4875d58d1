// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	connectorArea = "Connector"
	connectorLogs = "kubectl logs -n " + install.ConnectorName + " deploy/" + install.ConnectorName
	// skew is by how much clocks may differ: offers that are signed later than in five minutes count nowhere.
	skew = 5 * time.Minute
	// pluginFlag is the flag of Liqo's controller manager that says whom it asks what to offer.
	pluginFlag = "--resource-plugin-address"
	// brokerPlugin and connectorPlugin are the Services of the resource plugins of this project.
	brokerPlugin    = "liqo-broker-resource-plugin"
	connectorPlugin = "liqo-broker-connector-plugin"
)

// trades reports whether the cluster has a connector, and returns it.
func (l *look) trades(ctx context.Context) (*appsv1.Deployment, error) {
	var d appsv1.Deployment
	err := l.Get(ctx, client.ObjectKey{Namespace: install.ConnectorName, Name: install.ConnectorName}, &d)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // Most clusters have none.
	case err != nil:
		return nil, fmt.Errorf("read Deployment %s/%s: %w", install.ConnectorName, install.ConnectorName, err)
	}
	return &d, nil
}

// connector looks at what must hold before a cluster can buy and sell.
func (l *look) connector(ctx context.Context, d *appsv1.Deployment) []Check {
	state, do, what := OK, "", "Its Deployment is ready"
	if why := behind(d); why != "" {
		state, do, what = Problem, "kubectl describe pods -n "+install.ConnectorName+"; "+connectorLogs,
			fmt.Sprintf("Deployment %s/%s: %s", install.ConnectorName, install.ConnectorName, why)
	}
	all := []Check{one(connectorArea, state, do, "%s", what), l.connectorLeads(ctx), l.connectorKey(ctx)}
	all = append(all, l.registries(ctx)...)

	offers, failed := l.trade(ctx, "Offer")
	if failed != nil {
		return append(all, failed...)
	}
	open := 0
	for _, o := range offers {
		if sale, _, _ := unstructured.NestedString(o.Object, "spec", "sale"); sale != string(connectorv1alpha1.SaleClosed) {
			open++
		}
	}
	if open == 0 {
		return append(all, one(connectorArea, OK, "", "Nothing is for sale: this cluster buys only"))
	}
	return append(all, l.connectorSells(ctx, d, open)...)
}

// connectorLeads looks at who leads.
func (l *look) connectorLeads(ctx context.Context) Check {
	var lease coordinationv1.Lease
	err := l.Get(ctx, client.ObjectKey{Namespace: install.ConnectorName, Name: install.ConnectorName}, &lease)
	if client.IgnoreNotFound(err) != nil {
		return cannot(connectorArea, "the lease of the connector", err)[0]
	}
	renewed := time.Time{}
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || l.now.Sub(renewed) > stale {
		return one(connectorArea, Problem, connectorLogs, "No replica of the connector leads: nothing is bought or sold")
	}
	if ahead := renewed.Sub(l.now); ahead > skew {
		return one(connectorArea, Problem, "Set the clocks: others take nothing that is signed in the future",
			"The clock of the connector is %s ahead of that of this machine", ahead.Round(time.Second))
	}
	return one(connectorArea, OK, "", "%s leads", *lease.Spec.HolderIdentity)
}

// connectorKey looks whether the key is there, and does not read it.
func (l *look) connectorKey(ctx context.Context) Check {
	key := &metav1.PartialObjectMetadata{}
	key.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := l.Get(ctx, client.ObjectKey{Namespace: install.ConnectorName, Name: install.ConnectorName}, key)
	switch {
	case apierrors.IsNotFound(err):
		return one(connectorArea, Problem, "If this cluster was a party before, put its Secret back before the connector makes another key",
			"There is no Secret %s/%s with the key of this cluster", install.ConnectorName, install.ConnectorName)
	case err != nil:
		return cannot(connectorArea, "the Secret with the key of this cluster", err)[0]
	}
	return one(connectorArea, OK, "", "The key of this cluster is there")
}

// registries looks at how the use of registries goes.
func (l *look) registries(ctx context.Context) []Check {
	found, failed := l.trade(ctx, "Registry")
	if failed != nil {
		return failed
	}
	if len(found) == 0 {
		return []Check{
			one(connectorArea, Note, "Join one: "+version.Document("docs/trade/buyer.md"),
				"There is no Registry: offers of others are not known, and nobody knows those of this cluster"),
		}
	}
	var all []Check
	for i := range found {
		var registry connectorv1alpha1.Registry
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found[i].Object, &registry); err != nil {
			all = append(all, cannot(connectorArea, "Registry "+found[i].GetName(), err)...)
			continue
		}
		good := true
		for _, kind := range []string{connectorv1alpha1.ConditionEnrolled, connectorv1alpha1.ConditionFollowing} {
			switch c := meta.FindStatusCondition(registry.Status.Conditions, kind); {
			case c == nil:
				good = false
				all = append(all, one(connectorArea, Problem, connectorLogs, "Registry %s: the connector has not looked at it", registry.Name))
			case c.Status != metav1.ConditionTrue:
				good = false
				all = append(all, one(connectorArea, Problem, "kubectl describe registry "+registry.Name, "Registry %s is not %s: %s: %s",
					registry.Name, kind, c.Reason, c.Message))
			}
		}
		if good {
			all = append(all, one(connectorArea, OK, "", "Registry %s is followed, and knows this cluster", registry.Name))
		}
	}
	return all
}

// connectorSells looks at what who sells needs besides: buyers that reach it, and a Liqo that gives what was sold and nothing else.
func (l *look) connectorSells(ctx context.Context, d *appsv1.Deployment, open int) []Check {
	var all []Check
	args := argumentsOf(d)
	var settings corev1.ConfigMap
	at := client.ObjectKey{Namespace: install.ConnectorName, Name: install.ConnectorName}
	if err := client.IgnoreNotFound(l.Get(ctx, at, &settings)); err != nil {
		return cannot(connectorArea, "the settings of the connector", err)
	}
	given := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--endpoint=https://") })
	if settings.Data["endpoint"] == "" && !given {
		all = append(all, one(connectorArea, Problem, "Set endpoint in ConfigMap "+install.ConnectorName+", and restart the connector",
			"%d Offers are open, and buyers are not told where to negotiate: the connector has no endpoint", open))
	} else {
		all = append(all, one(connectorArea, OK, "", "%d Offers are open, and the connector has an endpoint", open))
	}

	if slices.Contains(args, "--broker") || slices.Contains(args, "--broker=true") {
		if !l.setup.Broker {
			return append(all, one(connectorArea, Problem, install0+", or take the flag away",
				"The connector has the flag --broker, and this cluster is no broker"))
		}
		return append(all, one(connectorArea, OK, "", "It sells what the broker aggregates"))
	}
	var manager appsv1.Deployment
	if err := l.Get(ctx, client.ObjectKey{Namespace: liqoNamespace, Name: liqo.ManagerName}, &manager); err != nil {
		return append(all, cannot(connectorArea, "Liqo's controller manager", err)...)
	}
	if !strings.HasPrefix(liqo.Manager(argumentsOf(&manager)).Value(pluginFlag), connectorPlugin+".") {
		return append(all,
			one(connectorArea, Problem, "Give Liqo's controller manager the flag "+pluginFlag+"="+connectorPlugin+"."+install.ConnectorName+":7000",
				"%d Offers are open, and Liqo does not ask the connector what to offer: every peer gets what Liqo likes", open))
	}
	return append(all, l.service(ctx, connectorArea, install.ConnectorName, connectorPlugin, "Liqo asks it what to offer", connectorLogs))
}

// argumentsOf returns the arguments of a Deployment's first container.
func argumentsOf(d *appsv1.Deployment) []string {
	if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
		return containers[0].Args
	}
	return nil
}

// trade lists objects of a kind of the connector. Failed is what is said if they cannot be read.
func (l *look) trade(ctx context.Context, kind string) (found []unstructured.Unstructured, failed []Check) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(connectorv1alpha1.GroupVersion.WithKind(kind + "List"))
	err := l.List(ctx, list)
	if missing := (&apierrors.StatusError{}); meta.IsNoMatchError(err) || errors.As(err, &missing) && apierrors.IsNotFound(err) {
		return nil, []Check{one(connectorArea, Problem, "kubectl apply "+version.Applied("deploy/connector"), "The kind %s is missing", kind)}
	}
	if err != nil {
		return nil, cannot(connectorArea, kind+"s", err)
	}
	return list.Items, nil
}
