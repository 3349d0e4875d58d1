// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

// watchDirect follows, on a broker, which consumers reach the foreign cluster past
// it, and calls changed when translations may have changed. It returns once what
// is known at first was taken over.
func watchDirect(
	ctx context.Context, client kubernetes.Interface, namespace string, to *Addresses, changed func(), log logr.Logger,
) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("metadata.name", remoteipam.DirectName).String()
		}))
	set := func(data map[string]string) {
		direct, err := remoteipam.ParseDirectConsumers(data)
		if err != nil {
			log.Error(err, "Ignored consumers that reach the foreign cluster directly: their entry cannot be read")
		}
		if to.setDirect(direct) {
			changed()
		}
	}
	read := func(object any) {
		if configMap, ok := object.(*corev1.ConfigMap); ok {
			set(configMap.Data)
		}
	}
	registration, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    read,
		UpdateFunc: func(_, updated any) { read(updated) },
		DeleteFunc: func(any) { set(nil) },
	})
	if err != nil {
		return fmt.Errorf("watch ConfigMap %s/%s: %w", namespace, remoteipam.DirectName, err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("watch ConfigMap %s/%s: %w", namespace, remoteipam.DirectName, context.Cause(ctx))
	}
	return nil
}
