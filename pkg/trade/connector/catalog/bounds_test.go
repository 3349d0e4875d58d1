// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/listings"
)

// TestDefaultBounds holds how much of what registries show is kept where nothing else is said, as it is documented and as the connector's
// pod has memory for.
func TestDefaultBounds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	id, err := identity.Load(t.Context(), c, "liqo-broker-connector")
	if err != nil {
		t.Fatal(err)
	}
	announcement, err := identity.Announce(t.Context(), c, "liqo-broker-connector", "name", "https://a.example:8446", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{
		Client: c, Reader: c, Namespace: "liqo-broker-connector", Identity: id, Announcement: announcement, Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	const all, party = 40 << 20, 1280 << 10
	for registries, want := range map[int]int{0: all, 1: all, 4: all / 4} {
		if got := m.bounds(registries); got != (listings.Bounds{Registry: want, Party: party}) {
			t.Errorf("each of %d registries has %+v, want %d bytes, and %d for each party", registries, got, want, party)
		}
	}
	document, err := os.ReadFile("../../../../docs/trade/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`share 40 MiB of its memory equally, and each party gets\s+1\.25 MiB`).Match(document) {
		t.Error("docs/trade/README.md says something else")
	}
	deployment, err := os.ReadFile("../../../../deploy/connector/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile(`name: GOMEMLIMIT\s+value: (\d+)MiB`).FindSubmatch(deployment)
	if target == nil {
		t.Fatal("the connector's Deployment has no GOMEMLIMIT")
	}
	if mib, err := strconv.Atoi(string(target[1])); err != nil || mib<<20 < all+all/4 {
		t.Errorf("the connector's pod collects garbage from %s MiB on, and what registries show takes %d MiB of them", target[1], all>>20)
	}
}
