// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// pod returns a Deployment with one container, as Liqo's chart makes them.
func pod(name string, args ...string) *appsv1.Deployment {
	d := deployment("liqo-" + name)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: name, Image: "liqo/" + name + ":v0.9.4", Args: args}}
	return d
}

// TestSidecars adds what we run beside Liqo's network manager, twice, and removes it in the order in which a broker that trades leaves:
// what closes Liqo's IPAM comes alone, stays when the remote IPAM goes, and then Liqo's own is as before.
func TestSidecars(t *testing.T) {
	d := pod("network-manager")
	stock := d.DeepCopy()
	add := func(files ...string) {
		t.Helper()
		for _, file := range files {
			if err := addSidecars(d, file, "registry/ours:v1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(file string) {
		t.Helper()
		if err := removeSidecars(d, file); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want ...string) {
		t.Helper()
		var names []string
		for _, c := range containers(&d.Spec.Template.Spec) {
			names = append(names, c.Name)
			if ours := c.Name != "network-manager"; ours != (c.Image == "registry/ours:v1") {
				t.Errorf("%s container %s has the image %s", when, c.Name, c.Image)
			}
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("%s the pod has the containers %v, want %v", when, names, want)
		}
	}
	add(patchIPAMGuard)
	check("of who trades", "ipam-guard", "network-manager", "shut-ipam")
	trades := d.DeepCopy()
	add(patchRemoteIPAM)
	check("of a broker", "ipam-guard", "network-manager", "remote-ipam", "shut-ipam")
	once := d.DeepCopy()
	add(patchIPAMGuard, patchRemoteIPAM)
	if diff := cmp.Diff(once, d); diff != "" {
		t.Errorf("added twice, it is different (-once, +twice):\n%s", diff)
	}
	remove(patchRemoteIPAM)
	if diff := cmp.Diff(trades, d); diff != "" {
		t.Errorf("without the remote IPAM, what closes Liqo's is different (-before, +after):\n%s", diff)
	}
	remove(patchIPAMGuard)
	if diff := cmp.Diff(stock, d); diff != "" {
		t.Errorf("removed, Liqo's is different (-before, +after):\n%s", diff)
	}
}

// TestPorts opens and closes the port of the remote IPAM.
func TestPorts(t *testing.T) {
	s := managerService()
	s.Spec.Ports = []corev1.ServicePort{{Name: "ipam-api", Port: 6000, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(6000)}}
	stock := s.DeepCopy()
	if err := merge(s, "network-manager-service.yaml"); err != nil {
		t.Fatal(err)
	}
	if len(s.Spec.Ports) != 2 {
		t.Errorf("the Service has the ports %v", s.Spec.Ports)
	}
	removePorts(s)
	if diff := cmp.Diff(stock, s); diff != "" {
		t.Errorf("closed, the Service is different (-before, +after):\n%s", diff)
	}
}

// TestHook adds and removes the hook of the gateway; one that somebody else has put there stays.
func TestHook(t *testing.T) {
	d := pod("gateway")
	stock := d.DeepCopy()
	if err := merge(d, "gateway.yaml"); err != nil {
		t.Fatal(err)
	}
	if d.Spec.Template.Spec.Containers[0].Lifecycle == nil {
		t.Error("the gateway has no hook")
	}
	if err := removeHook(d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stock, d); diff != "" {
		t.Errorf("without the hook, the gateway is different (-before, +after):\n%s", diff)
	}
	d.Spec.Template.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}
	if err := removeHook(d); err != nil || d.Spec.Template.Spec.Containers[0].Lifecycle == nil {
		t.Errorf("the hook of somebody else is removed, or %v", err)
	}
}

// sharing returns Liqo's gateway with its share, as any of our commands leaves it.
func sharing(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d := pod("gateway")
	if err := addShare(d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestShare gives Liqo's gateway its share, twice, and takes it; what somebody else has chosen stays.
func TestShare(t *testing.T) {
	chosen := func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		c.Args = append(c.Args, "--gateway.lease-duration=1m")
		d.Spec.Template.Spec.PriorityClassName = "tunnels"
	}
	for name, tc := range map[string]struct {
		reason string
		choose func(*appsv1.Deployment)
		want   []string
	}{
		"Stock": {
			"it gets all", func(*appsv1.Deployment) {},
			[]string{"250m 64Mi", "system-cluster-critical", "--run-as=liqo-gateway --gateway.lease-duration=20s --gateway.renew-deadline=15s"},
		},
		"Chosen": {
			"it gets what nobody has chosen", chosen,
			[]string{"0 0", "tunnels", "--run-as=liqo-gateway --gateway.lease-duration=1m --gateway.renew-deadline=15s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := pod("gateway", "--run-as=liqo-gateway")
			tc.choose(d)
			before := d.DeepCopy()
			for range 2 {
				if err := addShare(d); err != nil {
					t.Fatal(err)
				}
			}
			c := d.Spec.Template.Spec.Containers[0]
			got := []string{
				c.Resources.Requests.Cpu().String() + " " + c.Resources.Requests.Memory().String(), d.Spec.Template.Spec.PriorityClassName,
				strings.Join(c.Args, " "),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			if err := removeShare(d); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, d); diff != "" {
				t.Errorf("%s; without it, the gateway is different (-before, +after):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRules gives virtual kubelets rights, twice, and takes them.
func TestRules(t *testing.T) {
	role := virtualKubeletRights()
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	stock := role.DeepCopy()
	for range 2 {
		if err := addRules(role); err != nil {
			t.Fatal(err)
		}
	}
	if len(role.Rules) != 3 {
		t.Errorf("the role has %d rules, want one and two more", len(role.Rules))
	}
	if err := removeRules(role); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stock, role); diff != "" {
		t.Errorf("without them, the role is different (-before, +after):\n%s", diff)
	}
}

// TestFlags gives Liqo's controller manager flags, other ones in an upgrade, and takes them; the flags of somebody else stay.
func TestFlags(t *testing.T) {
	manager := func(args ...string) *appsv1.Deployment { return pod("controller-manager", args...) }
	const stockImage, foreign = "--kubelet-image=liqo/virtual-kubelet:v0.9.4", "--kubelet-extra-args=--pods=5"
	broker, err1 := managerFlags("controller-manager-broker.json", "team/liqo-broker-vk:v1", "")
	next, err2 := managerFlags("controller-manager-broker.json", "team/liqo-broker-vk:v2", "")
	consumer, err3 := managerFlags("controller-manager-consumer.json", "team/liqo-broker-vk:v1", "address-1")
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	const secondBroker = "--kubelet-extra-args=--remote-ipam=server=address-2"
	// Liqo's chart puts all arguments into one flag.
	const ofChart = "--kubelet-extra-args=--remote-ipam=server=address-1,--enable-apiserver-support=true"
	for name, tc := range map[string]struct {
		before, add []string
		stale       func(string) bool
		want        func(args []string) bool
	}{
		"Stays": {[]string{stockImage, foreign}, broker, outdated, func(args []string) bool {
			return len(args) == 2+len(broker) && args[0] == stockImage && args[1] == foreign
		}},
		"Upgrade": {append([]string{stockImage}, broker...), next, outdated, func(args []string) bool {
			return len(args) == 1+len(next) && !slices.Contains(args, "--kubelet-image=team/liqo-broker-vk:v1")
		}},
		"SecondBroker": {append([]string{stockImage, secondBroker}, consumer...), consumer, outdated, func(args []string) bool {
			return slices.Contains(args, secondBroker) && strings.Contains(strings.Join(args, " "), "address-1")
		}},
		"PrepareABroker": {append([]string{stockImage}, broker...), consumer, outdated, func(args []string) bool {
			return slices.Contains(args, "--resource-plugin-address=liqo-broker-resource-plugin.liqo-broker:7000") &&
				strings.Contains(strings.Join(args, " "), "address-1")
		}},
		"SomebodyElseLast": {append(slices.Clone(broker), stockImage), broker, outdated, func(args []string) bool {
			k, err := kubeletOf(args)
			return err == nil && k.image == "team/liqo-broker-vk:v1" && len(args) == len(broker)+1
		}},
		"OfChart": {[]string{ofChart}, consumer, outdated, func(args []string) bool {
			return len(args) == 1+len(consumer) && args[0] == "--kubelet-extra-args=--remote-ipam=server=address-1"
		}},
		"AsTheChart": {[]string{ofChart}, []string{"--kubelet-extra-args=--remote-ipam=server=address-1"}, outdated, func(args []string) bool {
			return slices.Equal(args, []string{ofChart})
		}},
		"UndoOfChart": {[]string{stockImage, ofChart}, nil, ownFlag, func(args []string) bool {
			return slices.Equal(args, []string{stockImage, "--kubelet-extra-args=--enable-apiserver-support=true"})
		}},
		"Undo": {append([]string{stockImage, foreign}, append(broker, consumer...)...), nil, ownFlag, func(args []string) bool {
			return slices.Equal(args, []string{stockImage, foreign})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := manager(tc.before...)
			for range 2 {
				if err := addFlags(d, tc.add, tc.stale); err != nil {
					t.Fatal(err)
				}
			}
			if args := d.Spec.Template.Spec.Containers[0].Args; !tc.want(args) {
				t.Errorf("the flags are %v", args)
			}
		})
	}
}

// TestKubelet makes a virtual kubelet that exists as Liqo would make it now, and back.
func TestKubelet(t *testing.T) {
	stock, err := kubeletOf([]string{"--kubelet-image=liqo/virtual-kubelet:v0.9.4"})
	if err != nil {
		t.Fatal(err)
	}
	flags, err := managerFlags("controller-manager-consumer.json", "team/liqo-broker-vk:v1", "address")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := kubeletOf(append([]string{"--kubelet-image=liqo/virtual-kubelet:v0.9.4"}, flags...))
	if err != nil {
		t.Fatal(err)
	}
	d := pod("virtual-kubelet", "--nodename=liqo-peer")
	d.Spec.Template.Spec.Containers[0].Image = "liqo/virtual-kubelet:v0.9.4"
	before := d.DeepCopy()
	if err := ours.apply(&d.Spec); err != nil {
		t.Fatal(err)
	}
	c := d.Spec.Template.Spec.Containers[0]
	if c.Image != "team/liqo-broker-vk:v1" || !slices.Equal(c.Args, []string{"--nodename=liqo-peer", "--remote-ipam=server=address"}) ||
		c.Resources.Limits.Memory().Cmp(resource.MustParse("2Gi")) != 0 {
		t.Errorf("the virtual kubelet is %+v", c)
	}
	if err := stock.apply(&d.Spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, d); diff != "" {
		t.Errorf("back, it is different (-before, +after):\n%s", diff)
	}
	for _, args := range [][]string{nil, {"--kubelet-image=a:1", "--kubelet-ram-limits=much"}} {
		if _, err := kubeletOf(args); err == nil {
			t.Errorf("kubeletOf(%v) has no error", args)
		}
	}
}

// TestStockKubelet has somebody put our image in the place of Liqo's, as the flag of the seed says: what is left is what Liqo's chart says.
func TestStockKubelet(t *testing.T) {
	d := pod("controller-manager", "--verbose", "--kubelet-image=capacitorset/liqo-broker-vk@sha256:abc")
	for range 2 {
		if err := withoutFlags(d); err != nil {
			t.Fatal(err)
		}
	}
	if args := d.Spec.Template.Spec.Containers[0].Args; !slices.Equal(args,
		[]string{"--verbose", "--kubelet-image=ghcr.io/liqotech/virtual-kubelet:v0.9.4"}) {
		t.Errorf("the flags are %v", args)
	}
	d.Spec.Template.Spec.Containers[0] = corev1.Container{Image: "liqo@sha256:abc"}
	if err := withoutFlags(d); err == nil {
		t.Error("nobody says which virtual kubelet Liqo has, and there is no error")
	}
}

func TestChoosePeer(t *testing.T) {
	broker, impostor, other := cluster.Identity{ID: "0a11", Name: "broker"}, cluster.Identity{ID: "0b22", Name: "0a11"},
		cluster.Identity{ID: "0a33", Name: "broker"}
	for name, tc := range map[string]struct {
		reason string
		peers  []cluster.Identity
		wanted string
		want   cluster.ID
	}{
		"Only":      {"there is no other", []cluster.Identity{broker}, "", broker.ID},
		"None":      {"there is none", nil, "", ""},
		"Which":     {"whoever is first is not meant by that", []cluster.Identity{broker, impostor}, "", ""},
		"ID":        {"an ID counts for more than a name", []cluster.Identity{impostor, broker}, "0a11", broker.ID},
		"Beginning": {"the beginning of an ID is enough", []cluster.Identity{impostor, other}, "0a3", other.ID},
		"Name":      {"a name is enough", []cluster.Identity{impostor, broker}, "broker", broker.ID},
		"Two":       {"but not one that two have", []cluster.Identity{broker, other}, "broker", ""},
		"Unknown":   {"nobody has it", []cluster.Identity{broker}, "nobody", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choosePeer(tc.peers, tc.wanted)
			if got.ID != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%s: choosePeer(%q) = %v, %v, want %q", tc.reason, tc.wanted, got, err, tc.want)
			}
		})
	}
}

func TestTag(t *testing.T) {
	for image, want := range map[string]string{
		"ghcr.io/liqotech/liqo:v0.9.4": "v0.9.4", "registry:5000/liqo": "", "liqo": "", "registry:5000/liqo:v1@sha256:abc": "v1", "": "",
	} {
		if got := ImageTag(image); got != want {
			t.Errorf("ImageTag(%q) = %q, want %q", image, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		valid   bool
	}{
		"None":     {Options{}, true},
		"All":      {Options{Registry: "registry:5000/team", Tag: "v1", Modes: []string{"catalog"}, Timeout: 1}, true},
		"Mode":     {Options{Modes: []string{"everything"}}, false},
		"Registry": {Options{Registry: "team/"}, false},
		"Tag":      {Options{Tag: "v1@sha256:abc"}, false},
		"Timeout":  {Options{Timeout: -1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.options.Validate(); (err == nil) != tc.valid {
				t.Errorf("Validate() = %v, want valid: %v", err, tc.valid)
			}
		})
	}
}

// TestManifests checks that what is installed has the images and modes that were chosen, and no status.
func TestManifests(t *testing.T) {
	installer, err := New(nil, Options{Registry: "registry/team", Tag: "v7", Modes: []string{"catalog"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	base, err := installer.manifests()
	if err != nil {
		t.Fatal(err)
	}
	if first := base[0].GetKind(); first != "Namespace" {
		t.Errorf("the first object is a %s, want the namespace of all others", first)
	}
	i := slices.IndexFunc(base, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if i < 0 {
		t.Fatal("there is no Deployment")
	}
	text, err := base[i].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for want, there := range map[string]bool{
		`"image":"registry/team/liqo-broker:v7"`: true, "--with-catalog": true, "--with-aggregator": false, "--with-orchestrator": false,
		`"status"`: false, "creationTimestamp": false, "--leader-elect": true,
	} {
		if strings.Contains(string(text), want) != there {
			t.Errorf("the Deployment has %s: %v, want %v", want, !there, there)
		}
	}
}
