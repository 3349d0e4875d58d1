// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// lister is a reflector that uses an informer of each kind.
type lister struct{ manager.Reflector }

func (lister) StartNamespace(opts *options.NamespacedOpts) {
	factory := opts.LocalFactory
	factory.Core().V1().Services().Informer()
	factory.Core().V1().Secrets().Informer()
	factory.Core().V1().ConfigMaps().Informer()
	factory.Core().V1().PersistentVolumeClaims().Informer()
	factory.Core().V1().Nodes().Informer()
	factory.Discovery().V1().EndpointSlices().Informer()
	factory.Networking().V1().Ingresses().Informer()
}

// The fake API does not select, so that the test looks at what is asked of it.
func TestGuard(t *testing.T) {
	cases := map[string]struct {
		reason    string
		namespace string
		want      map[string]string
	}{
		"LiqoNamespace": {"only the Service of the IPAM may leave it", "liqo", map[string]string{
			"services":               "metadata.name=liqo-network-manager",
			"endpointslices":         "kubernetes.io/service-name=liqo-network-manager",
			"secrets":                "metadata.name=",
			"configmaps":             "metadata.name=",
			"persistentvolumeclaims": "metadata.name=",
			"ingresses":              "metadata.name=",
			"nodes":                  "",
		}},
		"OtherNamespace": {"other namespaces are as in stock Liqo", "shop", map[string]string{
			"services": "", "endpointslices": "", "secrets": "", "configmaps": "", "persistentvolumeclaims": "", "ingresses": "", "nodes": "",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			got := map[string]string{}
			client := fake.NewSimpleClientset()
			client.PrependReactor("list", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
				mu.Lock()
				defer mu.Unlock()
				restrictions := action.(k8stesting.ListAction).GetListRestrictions()
				asked := []string{restrictions.Fields.String(), restrictions.Labels.String()}
				slices.Sort(asked)
				got[action.GetResource().Resource] = asked[1]
				return false, nil, nil
			})
			factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(tc.namespace))
			New(lister{}, "liqo").StartNamespace(options.NewNamespaced().WithLocal(tc.namespace, client, factory))
			factory.Start(t.Context().Done())
			deadline := time.AfterFunc(10*time.Second, func() { panic("the informers do not sync") })
			defer deadline.Stop()
			factory.WaitForCacheSync(t.Context().Done())

			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
