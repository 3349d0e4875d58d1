// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

func sample(t *testing.T) Cluster {
	t.Helper()
	l := topology.Overlapping()
	return Cluster{
		Cluster: l.Clusters[1], WAN: l.WAN, Gateway: l.Gateway, Dir: t.TempDir(), Cgroup: "lab-x/broker",
		Programs: "/programs", Stores: []string{"/store"}, HostPort: 12345,
	}
}

func TestFiles(t *testing.T) {
	c := sample(t)
	if err := c.WriteFiles(); err != nil {
		t.Fatal(err)
	}
	kubelet := map[string]any{}
	data, err := os.ReadFile(filepath.Join(c.Dir, "config", "kubelet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, &kubelet); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"/lab-x/broker", []any{"10.80.0.10"}}, []any{kubelet["cgroupRoot"], kubelet["clusterDNS"]}); diff != "" {
		t.Errorf("kubelet's configuration (-want +got):\n%s", diff)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:12345" {
		t.Errorf("the kubeconfig leads to %s", config.Host)
	}
}

// TestArgumentsNameFiles makes sure that every file that a program is told to read is written.
func TestArgumentsNameFiles(t *testing.T) {
	c := sample(t)
	if err := c.WriteFiles(); err != nil {
		t.Fatal(err)
	}
	for _, component := range c.Spec().Components {
		for _, arg := range component.Args {
			_, name, found := strings.Cut(arg, "/lab/")
			if !found || strings.Contains(arg, logsDir) {
				continue // Logs are there once something is written.
			}
			if _, err := os.Stat(filepath.Join(c.Dir, name)); err != nil {
				t.Errorf("%s: %s: %v", component.Name, arg, err)
			}
		}
	}
}

// TestAuditPolicy has the code of the API server read the policy, and asks it what is written down.
func TestAuditPolicy(t *testing.T) {
	read, err := policy.LoadPolicyFromBytes([]byte(auditPolicy))
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policy.NewPolicyRuleEvaluator(read)
	const own = "brokering.liqo.io"
	for name, tc := range map[string]struct {
		reason                       string
		verb, group, resource, below string
		want                         audit.Level
	}{
		"Patch":  {"What people do is written down.", "patch", own, "providers", "", audit.LevelMetadata},
		"Create": {"Also on a cluster that trades.", "create", own, "purchases", "", audit.LevelMetadata},
		"Status": {"What programs say of it is not.", "patch", own, "providers", "status", audit.LevelNone},
		"Read":   {"Nor is what anybody reads.", "watch", own, "providers", "", audit.LevelNone},
		"Others": {"Nor is what is of others.", "create", "", "pods", "", audit.LevelNone},
		"Leases": {"Nor is what is written all the time.", "update", "coordination.k8s.io", "leases", "", audit.LevelNone},
	} {
		t.Run(name, func(t *testing.T) {
			got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "alice"}, Verb: tc.verb, APIGroup: tc.group, APIVersion: "v1", Resource: tc.resource,
				Subresource: tc.below, Name: "one", ResourceRequest: true,
			})
			if got.Level != tc.want {
				t.Errorf("%s\nthe level is %s, want %s", tc.reason, got.Level, tc.want)
			}
			stages := []audit.Stage{audit.StageRequestReceived, audit.StageResponseStarted, audit.StagePanic}
			for _, stage := range stages {
				if !slices.Contains(got.OmitStages, stage) {
					t.Errorf("it is written down at stage %s, too", stage)
				}
			}
		})
	}
}

func TestSpec(t *testing.T) {
	c := sample(t)
	spec := c.Spec()
	if want := netip.MustParsePrefix("172.30.0.2/24"); spec.Address != want {
		t.Errorf("address %s, want %s", spec.Address, want)
	}
	var network struct {
		Plugins []struct {
			IPMasq bool `json:"ipMasq"`
			IPAM   struct {
				Ranges [][]struct {
					Subnet string `json:"subnet"`
				} `json:"ranges"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal([]byte(c.networkConfig()), &network); err != nil {
		t.Fatal(err)
	}
	if bridge := network.Plugins[0]; bridge.IPMasq || bridge.IPAM.Ranges[0][0].Subnet != "10.201.0.0/24" {
		t.Errorf("bridge %+v, want 10.201.0.0/24 without masquerading, which would hide pods from Liqo's peers", bridge)
	}
}
