// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/serving/lease"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// self is who this cluster is.
type self struct {
	cluster  cluster.Identity  // As Liqo knows it.
	identity identity.Identity // As a party.
	// name, authHost and announcement are what it says of itself: what others see it called, the host at which Liqo authenticates
	// others, which is empty if there is none, and all of that signed.
	name, authHost, announcement string
}

// findSelf returns who this cluster is, once Liqo is there. It makes the party's key and its announcement if they are not there.
func findSelf(ctx context.Context, direct client.Client, o options, log logr.Logger) (self, error) {
	known, err := awaitLiqo(ctx, direct, o.liqoNamespace, log)
	if err != nil {
		return self{}, err
	}
	key, err := identity.Load(ctx, direct, o.namespace)
	if err != nil {
		return self{}, err
	}
	own := self{cluster: known, identity: key, name: cmp.Or(o.name, known.Name), authHost: authHost(ctx, direct, o.liqoNamespace)}
	clusters := []registryv1.Cluster{{ID: string(known.ID), Auth: own.authHost}}
	own.announcement, err = identity.Announce(ctx, direct, o.namespace, own.name, o.endpoint, clusters, time.Now())
	return own, err
}

// liqoPoll is how often is looked whether Liqo is there.
const liqoPoll = 2 * time.Second

// awaitLiqo waits until Liqo is installed, and returns what it calls this cluster. Liqo may come after the connector, and its controller
// manager ends where the resource plugin does not answer by then: a connector that ends too would come back after minutes, when who
// installs Liqo has given up.
func awaitLiqo(ctx context.Context, reader client.Reader, namespace string, log logr.Logger) (cluster.Identity, error) {
	var known cluster.Identity
	told := false
	err := wait.PollUntilContextCancel(ctx, liqoPoll, true, func(ctx context.Context) (bool, error) {
		var err error
		known, err = v09.OwnIdentity(ctx, reader, namespace)
		if !apierrors.IsNotFound(err) {
			return err == nil, err
		}
		if !told {
			log.Info("Waits until Liqo is installed", "namespace", namespace)
			told = true
		}
		return false, nil
	})
	return known, err
}

// errMoved means that Liqo authenticates at another host than the one that was announced.
var errMoved = errors.New("liqo authenticates other clusters at another host now")

// authHost returns the host at which Liqo authenticates others; empty if there is none, as on a cluster that only buys.
func authHost(ctx context.Context, direct client.Client, liqoNamespace string) string {
	at, err := v09.AuthURL(ctx, direct, liqoNamespace)
	if err != nil {
		return ""
	}
	parsed, err := url.Parse(at)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// keepAuthHost returns what looks from time to time whether Liqo authenticates others where it was announced, until its context ends, which
// is no error, or Liqo does not.
func (s self) keepAuthHost(direct client.Client, liqoNamespace string) lease.EveryReplica {
	return func(ctx context.Context) error {
		err := wait.PollUntilContextCancel(ctx, time.Minute, false, func(ctx context.Context) (bool, error) {
			now := authHost(ctx, direct, liqoNamespace)
			return now != "" && now != s.authHost, nil
		})
		if err == nil {
			return errMoved
		}
		return nil // The context has ended.
	}
}
