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
	if err := i.rights(ctx, seen.line); err != nil {
		return err
	}
	if !i.options.LiqoUnsupported {
		if err := seen.line.fits(seen.Version); err != nil {
			return err
		}
	}
	if err := seen.line.needs(ctx, i.objects); err != nil {
		return err
	}
	return i.noDowngrade(ctx, seen)
}

// noDowngrade returns an error if newer images than those that were chosen are here, unless that is meant. Tags that are no versions are
// neither newer nor older.
func (i *Installer) noDowngrade(ctx context.Context, seen *Setup) error {
	if i.options.Downgrade {
		return nil
	}
	for _, name := range programs() {
		d, err := i.program(ctx, name)
		if err != nil {
			return err
		}
		if container, err := first(d); err == nil && older(i.options.Tag, ImageTag(container.Image)) {
			return i.tooOld("Deployment "+name+"/"+name, ImageTag(container.Image))
		}
	}
	if !seen.line.HasPlugin() {
		return nil
	}
	image, err := seen.line.image(ctx, i)
	if err != nil {
		return err
	}
	// Liqo's chart gives our virtual kubelet the version of Liqo if only its name is set.
	if tag := ImageTag(image); tag != seen.Version && older(i.options.Tag, tag) {
		return i.tooOld("our virtual kubelet", tag)
	}
	return nil
}

// programs returns the names of our Deployments, each of which has a namespace of the same name.
func programs() []string { return []string{BrokerName, GuardName, TransitName, AgentName} }

// program returns one of them, which is empty if it is not there.
func (i *Installer) program(ctx context.Context, name string) (*appsv1.Deployment, error) {
	at := client.ObjectKey{Namespace: name, Name: name}
	var d appsv1.Deployment
	if err := i.Get(ctx, at, &d); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Deployment %s: %w", at, err)
	}
	return &d, nil
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
