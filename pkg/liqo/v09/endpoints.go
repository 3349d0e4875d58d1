// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/discovery"
	foreignclusterutils "github.com/liqotech/liqo/pkg/utils/foreignCluster"
	"github.com/liqotech/liqo/pkg/utils/getters"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// What follows is where Liqo tells other clusters that this one is, found as Liqo finds it.

const (
	// AuthName is the name of the Deployment and the Service of Liqo's authentication service.
	AuthName = consts.AuthServiceName
	// PathIDs is where the authentication service tells everybody which cluster it is of, as [IDs]
	// (liqo/pkg/auth/auth.go@v0.9.4, a package that brings a client for all of Kubernetes).
	PathIDs = "/ids"
	// flagAPIServer is the flag of the authentication service that says where others reach the API server
	// (liqo/pkg/utils/apiserver/config.go@v0.9.4).
	flagAPIServer = "--advertise-api-server-address"
)

// IDs is what the authentication service answers at [PathIDs].
type IDs struct {
	ClusterID string `json:"clusterId"`
}

// AuthURL returns where other clusters authenticate at this one; namespace is where Liqo runs.
func AuthURL(ctx context.Context, reader client.Client, namespace string) (string, error) {
	url, err := foreignclusterutils.GetHomeAuthURL(ctx, reader, namespace)
	if err != nil {
		return "", fmt.Errorf("find the URL of Liqo's authentication service in namespace %s: %w", namespace, err)
	}
	return url, nil
}

// APIServerURL returns where other clusters reach the API server, as the authentication service tells them: by its flag, or else on the
// first node of the control plane that is found, with the usual port (liqo/pkg/utils/apiserver/address.go@v0.9.4). Namespace is where Liqo
// runs.
func APIServerURL(ctx context.Context, reader client.Reader, namespace string) (string, error) {
	auth, err := liqo.CommandLine(ctx, reader, client.ObjectKey{Namespace: namespace, Name: AuthName})
	if err != nil {
		return "", err
	}
	if told := auth.Value(flagAPIServer); told != "" {
		return "https://" + strings.TrimSuffix(strings.TrimPrefix(told, "https://"), "/"), nil
	}
	for _, role := range []string{"control-plane", "master", "controlplane"} {
		var nodes corev1.NodeList
		if err := reader.List(ctx, &nodes, client.HasLabels{"node-role.kubernetes.io/" + role}); err != nil {
			return "", fmt.Errorf("list the nodes of the control plane: %w", err)
		}
		if len(nodes.Items) == 0 {
			continue
		}
		host, err := discovery.GetAddressFromNodeList(nodes.Items)
		if err != nil {
			return "", fmt.Errorf("find the address of the API server: %w", err)
		}
		return "https://" + net.JoinHostPort(host, "6443"), nil
	}
	return "", fmt.Errorf("find the address of the API server: Deployment %s/%s has no flag %s, and no node is of the control plane",
		namespace, AuthName, flagAPIServer)
}

// GatewayAddress returns the host and the port (UDP) at which the tunnels of other clusters end; namespace is where Liqo runs.
func GatewayAddress(ctx context.Context, reader client.Reader, namespace string) (string, error) {
	var service corev1.Service
	key := client.ObjectKey{Namespace: namespace, Name: GatewayName}
	if err := reader.Get(ctx, key, &service); err != nil {
		return "", fmt.Errorf("get Service %s: %w", key, err)
	}
	host, port, err := getters.RetrieveWGEPFromService(&service, consts.GatewayServiceAnnotationKey, consts.DriverName)
	if err != nil {
		return "", fmt.Errorf("find where Service %s is reached: %w", key, err)
	}
	return net.JoinHostPort(host, port), nil
}
