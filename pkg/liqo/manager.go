// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ManagerName is the name of the Deployment of Liqo's controller manager.
const ManagerName = "liqo-controller-manager"

// The flags of Liqo's controller manager that say what peers may have (cmd/liqo-controller-manager/main.go of liqo@v0.9.4).
const (
	flagKubeletImage    = "--kubelet-image"
	flagResourcePlugin  = "--resource-plugin-address"
	flagIncomingPeering = "--enable-incoming-peering"
)

// VirtualKubeletImage is the last part of the name of the image of this project's virtual kubelet.
const VirtualKubeletImage = "liqo-broker-vk"

// Manager is the command line of Liqo's controller manager, or of another part of Liqo.
type Manager []string

// ReadManager returns the command line of Liqo's controller manager; namespace is where Liqo runs.
func ReadManager(ctx context.Context, reader client.Reader, namespace string) (Manager, error) {
	return CommandLine(ctx, reader, client.ObjectKey{Namespace: namespace, Name: ManagerName})
}

// CommandLine returns that of the first container of a Deployment.
func CommandLine(ctx context.Context, reader client.Reader, key client.ObjectKey) (Manager, error) {
	var d appsv1.Deployment
	if err := reader.Get(ctx, key, &d); err != nil {
		return nil, fmt.Errorf("get Deployment %s: %w", key, err)
	}
	containers := d.Spec.Template.Spec.Containers
	if len(containers) == 0 {
		return nil, fmt.Errorf("the Deployment %s has no container", key)
	}
	return append(slices.Clone(containers[0].Command), containers[0].Args...), nil
}

// Value returns what the command line says of a flag, as --flag=value or as two words; the last one counts, as with Go's flags.
func (m Manager) Value(flag string) (value string) {
	for i, arg := range m {
		switch after, joined, is := cutFlag(arg, flag); {
		case !is:
		case joined:
			value = after
		case i+1 < len(m):
			value = m[i+1]
		}
	}
	return value
}

// isOff reports whether a flag that is true or false is set to false. Go takes no second word for such: --flag false is true.
func (m Manager) isOff(flag string) (off bool) {
	for _, arg := range m {
		if after, joined, is := cutFlag(arg, flag); is {
			set, err := strconv.ParseBool(after)
			off = joined && err == nil && !set
		}
	}
	return off
}

// cutFlag returns what follows a flag in an argument, and whether something does, if the argument is the flag. Go's flags take one dash as
// well.
func cutFlag(arg, flag string) (value string, joined, is bool) {
	name, value, joined := strings.Cut(arg, "=")
	return value, joined, name == flag || "-"+name == flag
}

// Unguarded returns why Liqo would give peers more than they are to have; none if it would not.
func (m Manager) Unguarded() (why []string) {
	if image := m.Value(flagKubeletImage); !OwnVirtualKubelet(image) {
		why = append(why, fmt.Sprintf("%s has %s=%q: Liqo's own virtual kubelet hands out the Secrets of namespaces that peers name", ManagerName,
			flagKubeletImage, image))
	}
	if m.Value(flagResourcePlugin) == "" && !m.isOff(flagIncomingPeering) {
		why = append(why, fmt.Sprintf("%s has neither %s nor %s=false: every peer gets a part of this cluster", ManagerName, flagResourcePlugin,
			flagIncomingPeering))
	}
	return why
}

// OwnVirtualKubelet reports whether an image is that of this project's virtual kubelet, of whatever registry and version.
func OwnVirtualKubelet(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return name == VirtualKubeletImage
}

// ControllerManager returns the name of the user as which Liqo's controller manager
// writes; namespace is where Liqo runs
// (liqo/deployments/liqo/templates/liqo-controller-manager-rbac.yaml@v0.9.4).
func ControllerManager(namespace string) string {
	return "system:serviceaccount:" + namespace + ":liqo-controller-manager"
}
