// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/capacitorset/liqo-broker/pkg/controller/consumer"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// TestOptionsReachTheControllers checks that controllers go by the options of the daemon, and lack nothing else.
func TestOptionsReachTheControllers(t *testing.T) {
	own := cluster.Identity{ID: "id-broker", Name: "broker"}
	b, err := newBroker(brokerConfig{
		options: options{catalog: true, maxNamespaces: 7, giveBackAfter: 3 * time.Minute},
		mapping: liqo.MappingSame, rest: &rest.Config{Host: "https://192.0.2.1"}, log: logr.Discard(),
	})
	if err != nil {
		t.Fatalf("newBroker(): %v", err)
	}
	mgr, err := ctrl.NewManager(b.cfg.rest, ctrl.Options{
		Scheme: b.scheme, Logger: b.cfg.log, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatalf("NewManager(): %v", err)
	}
	m := newBrokerMetrics(mgr.GetClient(), nil)
	reader := snapshottest.Reader(mgr.GetClient(), own.ID)
	o := brokering{
		cfg: &b.cfg, mgr: mgr, own: own, reader: reader, capacity: snapshot.NewCapacityCache(reader),
		planner: planning.NewPlanner(nil, clock.RealClock{}, nil), metrics: m,
	}
	o.told = reports.New(o.reportsConfig())
	twins, givesBack := o.twinConfig(), o.giveBackConfig()
	if twins.MaxNamespaces != 7 || twins.Mapping != b.cfg.mapping || twins.Own != own || twins.Metrics != m.twin {
		t.Errorf("the controller of twin namespaces goes by %+v", twins)
	}
	if givesBack.After != 3*time.Minute || givesBack.Given != m.given {
		t.Errorf("the controller that gives pods back goes by %+v", givesBack)
	}
	for _, config := range []reflect.Value{
		reflect.ValueOf(twins), reflect.ValueOf(givesBack), reflect.ValueOf(o.grantsConfig()),
		reflect.ValueOf(o.consumerConfig(consumer.Modes{Orchestrator: true})),
	} {
		for field, value := range config.Fields() {
			if value.IsZero() {
				t.Errorf("%s has no %s", config.Type(), field.Name)
			}
		}
	}
}

// registry is a manager that notes the names of its controllers.
type registry struct {
	ctrl.Manager

	names []string
}

func (r *registry) Add(runnable manager.Runnable) error {
	r.names = append(r.names, reflect.ValueOf(runnable).Elem().FieldByName("Name").String())
	return nil
}

// TestControllersOfLines checks which controllers there are with which line of Liqo: where Liqo does not ask what to offer, one answers
// consumers.
func TestControllersOfLines(t *testing.T) {
	b, err := newBroker(brokerConfig{
		options: options{orchestrator: true}, mapping: liqo.MappingSame, rest: &rest.Config{Host: "https://192.0.2.1"},
		log: logr.Discard(), asker: promquery.None{},
	})
	if err != nil {
		t.Fatalf("newBroker(): %v", err)
	}
	for _, of := range lines.All() {
		mgr, err := ctrl.NewManager(b.cfg.rest, ctrl.Options{
			Scheme: b.scheme, Logger: b.cfg.log, Metrics: metricsserver.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			t.Fatalf("NewManager(): %v", err)
		}
		noted, reader := &registry{Manager: mgr}, snapshot.New(of, mgr.GetClient(), "id-broker", nil)
		o := brokering{
			cfg: &b.cfg, mgr: noted, reader: reader, capacity: snapshot.NewCapacityCache(reader),
			planner: planning.NewPlanner(nil, clock.RealClock{}, nil), metrics: newBrokerMetrics(mgr.GetClient(), nil),
		}
		if !of.HasPlugin() {
			o.told = reports.New(o.reportsConfig())
		}
		if (o.consumerConfig(consumer.Modes{}).Heard != nil) != (of.Name() == "1.x") {
			t.Errorf("with Liqo %s consumers have agents", of.Name())
		}
		if (o.liveLinks() != nil) != (of.Name() == "1.x") {
			t.Errorf("with Liqo %s somebody looks whether gateways are silent", of.Name())
		}
		if err := o.setupControllers(consumer.Modes{Orchestrator: true}); err != nil {
			t.Fatalf("with Liqo %s: %v", of.Name(), err)
		}
		for name, want := range map[string]bool{
			"consumer": true, "twin": true, "grants": of.Name() == "1.x", "reports": of.Name() == "1.x",
			"liqonamespace": of.Name() == "0.9",
		} {
			if slices.Contains(noted.names, name) != want {
				t.Errorf("with Liqo %s there are the controllers %q", of.Name(), noted.names)
			}
		}
	}
}
