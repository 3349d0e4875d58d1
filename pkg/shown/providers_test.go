// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// watched returns the history of a provider that was up for six minutes, and of a pod there.
func watched(name string) *v1alpha1.ProviderHistory {
	var h kpi.History
	for minute := range 7 {
		h = h.Observe(showntest.Midnight.Add(time.Duration(minute)*time.Minute), true)
	}
	h.Pods = h.Pods.Add(showntest.Midnight, []kpi.PodSeen{{At: showntest.Midnight, Consumer: "c", Startup: time.Second}})
	return &v1alpha1.ProviderHistory{ObjectMeta: metav1.ObjectMeta{Name: name}, History: h.String()}
}

// TestLabelsAndHistory shows providers to who may read all, and to who may not read nodes, offers or histories: these see the rest.
func TestLabelsAndHistory(t *testing.T) {
	milan, node := showntest.NewProvider(showntest.Milan), liqotest.VirtualNode(showntest.Milan, true)
	offer := liqotest.Offer(showntest.Milan, nil)
	milan.Labels = map[string]string{"region": "north"}
	node.Labels["region"], node.Labels["zone"], offer.Spec.NodeName = "south", "a", node.Name
	liar := liqotest.VirtualNode(showntest.Turin, true) // Of which Turin has made no offer.
	liar.Labels["zone"] = "b"
	garbled := watched(string(showntest.Turin.ID))
	garbled.History = strings.Replace(garbled.History, "360", "-1", 1)
	objects := []client.Object{
		milan, showntest.NewProvider(showntest.Turin), node, liar, offer, liqotest.ForeignCluster(showntest.Milan, true, false),
		watched(milan.Name), garbled,
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("not allowed"))
	for name, tc := range map[string]struct {
		refuses client.ObjectList
		by      error
		labels  apiv1.Labels // Without those of Liqo's own.
		windows int
		fails   bool
	}{
		"all":            {labels: apiv1.Labels{"region": "north", "zone": "a"}, windows: 3},
		"no nodes":       {refuses: &corev1.NodeList{}, by: forbidden, labels: apiv1.Labels{"region": "north"}, windows: 3},
		"no offers":      {refuses: &v09.ResourceOfferList{}, by: forbidden, labels: apiv1.Labels{"region": "north"}, windows: 3},
		"no histories":   {refuses: &v1alpha1.ProviderHistoryList{}, by: forbidden, labels: apiv1.Labels{"region": "north", "zone": "a"}},
		"histories fail": {refuses: &v1alpha1.ProviderHistoryList{}, by: errors.New("down"), fails: true},
		"nodes fail":     {refuses: &corev1.NodeList{}, by: errors.New("down"), fails: true},
		"no providers":   {refuses: &v1alpha1.ProviderList{}, by: forbidden, fails: true},
	} {
		reader := snapshottest.NewClient(t, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if tc.refuses != nil && reflect.TypeOf(list) == reflect.TypeOf(tc.refuses) {
					return tc.by
				}
				return c.List(ctx, list, opts...)
			},
		}, objects...)
		items, err := (&Objects{Reader: reader, Line: v09.Line{}, Own: showntest.Broker}).Items(t.Context(), Providers)
		if tc.fails {
			if err == nil {
				t.Errorf("%s: it is not told", name)
			}
			continue
		}
		if err != nil || len(items) != 2 {
			t.Fatalf("%s: %v (%v)", name, items, err)
		}
		for _, item := range items {
			p, is := item.Value.(apiv1.Provider)
			if !is {
				t.Fatalf("%s: %+v", name, item)
			}
			if p.ID == string(showntest.Turin.ID) {
				if p.Labels != nil || p.History != nil {
					t.Errorf("%s: of Turin, %v and %v", name, p.Labels, p.History)
				}
				continue
			}
			for label := range p.Labels {
				if strings.Contains(label, "liqo.io/") {
					delete(p.Labels, label)
				}
			}
			if diff := cmp.Diff(tc.labels, p.Labels); diff != "" {
				t.Errorf("%s: labels (-want +got):\n%s", name, diff)
			}
			if len(p.History) != tc.windows || tc.windows > 0 && (p.History[0].UpSeconds[0] != 300 || p.History[1].UpSeconds[0] != 360) {
				t.Errorf("%s: history %+v", name, p.History)
			}
		}
	}
}

func TestKeepWindows(t *testing.T) {
	kept := watched("a")
	KeepWindows(kept)
	before, errBefore := kpi.Parse(watched("a").History)
	after, err := kpi.Parse(kept.History)
	if err != nil || errBefore != nil || len(before.Pods) != 1 || after.Pods != nil || !cmp.Equal(before.Windows(), after.Windows()) {
		t.Errorf("%s (%v, %v)", kept.History, err, errBefore)
	}
	garbled := &v1alpha1.ProviderHistory{History: "{"}
	if KeepWindows(garbled); garbled.History != "{" {
		t.Errorf("it is %q", garbled.History)
	}
}
