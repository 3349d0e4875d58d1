// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	// guardName is the name of the guard's namespace, Deployment, Service and webhook configurations (deploy/guard).
	guardName = "liqo-broker-guard"
	guardArea = "Guard"
	guardLogs = "kubectl logs -n " + guardName + " deploy/" + guardName
)

// guard looks at who keeps peers in bounds: whether it answers, whether the API server knows it, and, where there is a connector, whether
// that sees it refuse.
func (l *look) guard(ctx context.Context) []Check {
	all := []Check{l.service(ctx, guardArea, guardName, guardName, "the API server asks it about peers", guardLogs)}
	all = append(all, l.webhooks(ctx, guardArea, guardName, guardLogs)...)
	if l.setup.Trades && l.unguarded != nil {
		all = append(all, l.refuses(ctx))
	}
	return all
}

// refuses asks what the connector asks before it trades, with its rights: what it says here is what the connector finds.
func (l *look) refuses(ctx context.Context) Check {
	why, err := l.unguarded(ctx)
	switch {
	case err == nil && why == "":
		return one(guardArea, OK, "", "The connector sees that peers are kept in bounds")
	case err == nil:
		return one(guardArea, Problem, guard0, "The connector neither buys nor sells: %s", why)
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "cannot impersonate"):
		// Not who diagnoses lacks a right, but the connector.
		return one(guardArea, Problem, "kubectl apply "+version.Applied("deploy/connector"),
			"The connector neither buys nor sells, since it cannot see whether peers are kept in bounds: %v", err)
	default:
		return cannot(guardArea, "whether the connector sees that peers are kept in bounds", err)[0]
	}
}
