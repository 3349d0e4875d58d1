// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forward returns an error unless the caller may bring the cluster to the version of the images that were chosen.
func (i *Installer) forward(ctx context.Context, seen *Setup) error {
	if err := i.rights(ctx); err != nil {
		return err
	}
	if seen.Version != LiqoVersion && !i.options.LiqoUnsupported {
		return requirement("this cluster has Liqo %s, and our virtual kubelet is built of %s: with --liqo-unsupported it is tried "+
			"all the same", seen.Version, LiqoVersion)
	}
	return i.noDowngrade(ctx, seen.Version)
}

// noDowngrade returns an error if newer images than those that were chosen are here, unless that is meant. Tags that are no versions are
// neither newer nor older.
func (i *Installer) noDowngrade(ctx context.Context, ofLiqo string) error {
	if i.options.Downgrade {
		return nil
	}
	for _, at := range []client.ObjectKey{{Namespace: BrokerNamespace, Name: BrokerName}, {Namespace: GuardName, Name: GuardName}} {
		var d appsv1.Deployment
		if err := i.Get(ctx, at, &d); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Deployment %s: %w", at, err)
		}
		if container, err := first(&d); err == nil && older(i.options.Tag, ImageTag(container.Image)) {
			return i.tooOld("Deployment "+at.String(), ImageTag(container.Image))
		}
	}
	args, err := i.managerArgs(ctx)
	if err != nil {
		return err
	}
	// Liqo's chart gives our virtual kubelet the version of Liqo if only its name is set.
	if tag := ImageTag(kubeletInUse(args)); tag != ofLiqo && older(i.options.Tag, tag) {
		return i.tooOld("our virtual kubelet", tag)
	}
	return nil
}

// tooOld says that something here is newer than what was chosen.
func (i *Installer) tooOld(what, tag string) error {
	return requirement("%s is %s here, newer than %s that was to be installed: take the plugin of %s, or say --downgrade", what, tag,
		i.options.Tag, tag)
}

// older reports whether a tag is an older version than another one. What is no version is not.
func older(tag, than string) bool {
	this, err1 := utilversion.ParseSemantic(tag)
	other, err2 := utilversion.ParseSemantic(than)
	return err1 == nil && err2 == nil && this.LessThan(other)
}
