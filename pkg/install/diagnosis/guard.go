// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

const (
	guardArea = "Guard"
	guardLogs = "kubectl logs -n " + install.GuardName + " deploy/" + install.GuardName
)

// guard looks at who keeps peers in bounds: whether it answers, whether the API server knows it, and, where there is a connector, whether
// that sees it refuse.
func (l *look) guard(ctx context.Context) []Check {
	all := []Check{l.service(ctx, guardArea, install.GuardName, install.GuardName, "the API server asks it about peers", guardLogs)}
	all = append(all, l.webhooks(ctx, guardArea, install.GuardName, guardLogs)...)
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
