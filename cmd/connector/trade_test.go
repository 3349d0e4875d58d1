// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/servertest"
)

// watched is a cache whose informers follow a fake API server.
type watched struct {
	informertest.FakeInformers

	api client.WithWatch
	end <-chan struct{}

	mu        sync.Mutex
	informers map[schema.GroupVersionKind]toolscache.SharedIndexInformer
}

// listWatch lists before it watches: a fake API server does not begin a watch with what there is.
type listWatch struct{ toolscache.ListWatch }

func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (w *watched) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(object, w.api.Scheme())
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, is := w.informers[gvk]; is {
		return known, nil
	}
	list := func() client.ObjectList {
		made, _ := w.api.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		all, _ := made.(client.ObjectList)
		return all
	}
	informer := toolscache.NewSharedIndexInformer(&listWatch{toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			all := list()
			return all, w.api.List(ctx, all)
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			return w.api.Watch(ctx, list())
		},
	}}, object, 0, toolscache.Indexers{})
	w.informers[gvk] = informer
	go informer.Run(w.end)
	return informer, nil
}

// faked is a manager that reads from a fake API server only.
type faked struct {
	ctrl.Manager

	api client.Client
}

func (m faked) GetAPIReader() client.Reader { return m.api }

// guardedCluster returns a node, and what keeps buyers in bounds.
func guardedCluster() []client.Object {
	webhooks, fails := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "liqo-broker-guard"}}, admissionv1.Fail
	for _, name := range []string{"allowance", "isolate", "guard-identities", "services", "mappings", "peers", "tunnels"} {
		webhooks.Webhooks = append(webhooks.Webhooks, admissionv1.ValidatingWebhook{Name: name + ".brokering.liqo.io", FailurePolicy: &fails})
	}
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqo.DefaultNamespace, Name: liqo.ManagerName}}
	manager.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "controller-manager", Command: []string{"/usr/bin/liqo-controller-manager"},
		Args: []string{"--kubelet-image=registry.example.com/liqo-broker-vk:v1", "--resource-plugin-address=liqo-broker.liqo-broker:6001"},
	}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	node.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("500"),
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return []client.Object{webhooks, manager, node}
}

// TestWiring runs all controllers of a connector on a fake API server, with a registry, and looks whether what happens in one part sets
// off the others at once, and not only when they look by themselves.
func TestWiring(t *testing.T) {
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme, v09.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(
		&connectorv1alpha1.Registry{}, &connectorv1alpha1.Offer{}, &connectorv1alpha1.CapacityRequest{}, &connectorv1alpha1.Purchase{},
	).WithObjects(guardedCluster()...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, is := object.(*certificatesv1.CertificateSigningRequest); is { // The guard refuses what is tried.
				err := apierrors.NewForbidden(schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}, "", nil)
				err.ErrStatus.Message = `admission webhook "guard-identities.brokering.liqo.io" denied the request: ` + liqo.ProbeRefused
				return err
			}
			return c.Create(ctx, object, options...)
		},
	}).Build()
	ctx, cancel := context.WithCancel(t.Context())
	known := &watched{api: api, end: ctx.Done(), informers: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{}}
	again := true // The names of controllers are those of one run of the test.
	made, err := ctrl.NewManager(&rest.Config{Host: "https://192.0.2.1"}, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: &again},
		NewCache:   func(*rest.Config, cache.Options) (cache.Cache, error) { return known, nil },
		NewClient:  func(*rest.Config, client.Options) (client.Client, error) { return api, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr := faked{made, api}
	own, err := identity.Load(t.Context(), api, "connector")
	if err != nil {
		t.Fatal(err)
	}
	announcement, err := identity.Announce(t.Context(), api, "connector", "own", "https://own.example:8446", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	trades, err := newTrade(mgr, api, tradeConfig{
		options: options{
			namespace: "connector", liqoNamespace: liqo.DefaultNamespace, address: ":1", share: 30,
			reserveFor: time.Minute, decideFor: time.Minute, drain: time.Minute,
			keepContracts: time.Hour, keepMebibytes: 1, maxOpen: 1, maxKept: 1,
		},
		self: self{cluster: cluster.Identity{ID: "own", Name: "own"}, identity: own, name: "own", announcement: announcement},
		log:  logr.Discard(), granted: func() {}, refused: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := trades.buy(); err != nil {
		t.Fatal(err)
	}
	if _, server, err := trades.sell(t.Context()); err != nil || server == nil {
		t.Fatalf("the server of negotiations is %v, %v", server, err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	published := ""
	within := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not within 20 s: %s %s", what, published)
			}
		}
	}

	// A request that nothing fits waits; it is looked at again when a registry shows an offer.
	wanted := &connectorv1alpha1.CapacityRequest{ObjectMeta: metav1.ObjectMeta{Name: "wanted", Generation: 1}}
	wanted.Spec.Resources = v1alpha1.Quantities{
		"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("1"),
	}
	if err := api.Create(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	condition := func(of client.Object, conditions *[]metav1.Condition, name string) string {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
			t.Fatal(err)
		}
		if found := meta.FindStatusCondition(*conditions, name); found != nil {
			return string(found.Status) + " " + found.Reason + " " + found.Message
		}
		return ""
	}
	within("the request is looked at", func() bool { return condition(wanted, &wanted.Status.Conditions, "Ready") != "" })
	shown, seller := servertest.New(t), registrytest.NewParty(t, "seller")
	c := seller.Client(t, shown.Address, shown.Fingerprint)
	if _, err := c.Announce(t.Context(), seller.ID, seller.Enrolment(t, 1, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), seller.ID, "large", seller.Sign(t, offer.Type, seller.Document(t, "large", 1))); err != nil {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), &connectorv1alpha1.Registry{
		ObjectMeta: metav1.ObjectMeta{Name: "shown", UID: "shown", Generation: 1},
		Spec:       connectorv1alpha1.RegistrySpec{URL: "https://" + shown.Address, Fingerprint: shown.Fingerprint},
	}); err != nil {
		t.Fatal(err)
	}
	within("the offer is chosen", func() bool {
		condition(wanted, &wanted.Status.Conditions, "Ready")
		return wanted.Status.Purchase != ""
	})

	// An offer is listed, and looked at again when the registry has it.
	sold := &connectorv1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{Name: "small", Generation: 1},
		Spec: connectorv1alpha1.OfferSpec{
			Title: "Small", Sale: connectorv1alpha1.SaleOpen, Kind: connectorv1alpha1.KindCluster, Region: "eu",
			Plans: []connectorv1alpha1.OfferPlan{{
				ID: "s", Price: connectorv1alpha1.Price{Amount: "0.10", Currency: "EUR", Period: "PT1H"}, Resources: wanted.Spec.Resources,
			}},
			Buyers: connectorv1alpha1.Buyers{Otherwise: connectorv1alpha1.VerdictAccept},
		},
	}
	if err := api.Create(t.Context(), sold); err != nil {
		t.Fatal(err)
	}
	within("the offer is listed", func() bool {
		published = condition(sold, &sold.Status.Conditions, connectorv1alpha1.ConditionPublished)
		return strings.HasPrefix(published, "True")
	})
}
