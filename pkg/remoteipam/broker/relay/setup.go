// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"errors"
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// Config is what gives relay addresses out and frees them. All must be there.
type Config struct {
	IPAM IPAM
	// Pods tells which addresses are in use. It knows all of them once Known is closed: none
	// is freed before.
	Pods  Pods
	Known <-chan struct{}
	// Cached reads NatMappings from a cache, and Live from the API server.
	Cached, Live client.Reader
	// Limit is about how many addresses a consumer may have.
	Limit int
	Clock clock.PassiveClock
}

// Setup registers the controller with a manager that frees the addresses of the Allocator
// that it returns.
func Setup(mgr ctrl.Manager, cfg Config) (*Allocator, error) {
	if cfg.IPAM == nil || cfg.Pods == nil || cfg.Known == nil || cfg.Cached == nil || cfg.Live == nil || cfg.Limit <= 0 || cfg.Clock == nil {
		return nil, errors.New(
			"relay addresses need an IPAM, pods and when they are known, a cache, the API server, a positive limit and a clock")
	}
	allocator := NewAllocator(cfg.IPAM, cfg.Pods, NatMappings{cfg.Cached}, NatMappings{cfg.Live}, cfg.Limit)
	collector := NewCollector(allocator, cfg.Cached, cfg.Known, cfg.Clock)
	if err := ctrl.NewControllerManagedBy(mgr).Named("relay").For(&v09.NatMapping{}).Complete(collector); err != nil {
		return nil, fmt.Errorf("set up the collector of relay addresses: %w", err)
	}
	return allocator, nil
}
