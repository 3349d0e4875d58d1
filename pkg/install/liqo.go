// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	liqoinstall "github.com/capacitorset/liqo-broker/patches/liqo-install"
)

// What an installation of Liqo v0.9.4 is called, in its namespace (deployments/liqo of liqo@v0.9.4).
const (
	liqoNamespace      = "liqo"
	controllerManager  = "liqo-controller-manager"
	networkManager     = "liqo-network-manager"
	gateway            = "liqo-gateway"
	virtualKubeletRole = "liqo-virtual-kubelet-local"
)

// The flags of Liqo's controller manager that say how it makes virtual kubelets (cmd/liqo-controller-manager/main.go of liqo@v0.9.4).
const (
	flagImage       = "--kubelet-image"
	flagExtraArgs   = "--kubelet-extra-args"
	flagRAMRequests = "--kubelet-ram-requests"
	flagRAMLimits   = "--kubelet-ram-limits"
	// flagRemoteIPAM is one of ours, of the virtual kubelets.
	flagRemoteIPAM = "--remote-ipam"
)

// operation is one of a JSON patch, which adds something.
type operation struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// into reads what is added.
func (o operation) into(value any) error {
	if err := json.Unmarshal(o.Value, value); err != nil {
		return fmt.Errorf("read what is added at %s: %w", o.Path, err)
	}
	return nil
}

// operations returns those of a JSON patch of package liqoinstall.
func operations(file string) ([]operation, error) {
	text, err := liqoinstall.Files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read patch %s: %w", file, err)
	}
	var all []operation
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read patch %s: %w", file, err)
	}
	return all, nil
}

// additions returns what a JSON patch of package liqoinstall adds to a list.
func additions[T any](file string) ([]T, error) {
	all, err := operations(file)
	if err != nil {
		return nil, err
	}
	values := make([]T, len(all))
	for i := range all {
		if err := all[i].into(&values[i]); err != nil {
			return nil, fmt.Errorf("read patch %s, operation %d: %w", file, i, err)
		}
	}
	return values, nil
}

// merge applies a strategic merge patch of package liqoinstall to an object.
func merge[T any](object *T, file string) error {
	text, err := liqoinstall.Files.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read patch %s: %w", file, err)
	}
	patch, err := yaml.YAMLToJSON(text)
	if err != nil {
		return fmt.Errorf("read patch %s: %w", file, err)
	}
	before, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("write the object that patch %s is for: %w", file, err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, *object)
	if err != nil {
		return fmt.Errorf("apply patch %s: %w", file, err)
	}
	var merged T
	if err := json.Unmarshal(after, &merged); err != nil {
		return fmt.Errorf("read what patch %s makes: %w", file, err)
	}
	*object = merged
	return nil
}

// containers returns all containers of a pod, which may be changed.
func containers(spec *corev1.PodSpec) []*corev1.Container {
	var all []*corev1.Container
	for i := range spec.InitContainers {
		all = append(all, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		all = append(all, &spec.Containers[i])
	}
	return all
}

// What we run beside Liqo's network manager (patches/liqo-install), of the image sidecarImage: on a broker both, and on a cluster that
// trades what closes Liqo's IPAM.
const (
	sidecarImage    = "liqo-broker-network-manager"
	patchIPAMGuard  = "ipam-guard.yaml"
	patchRemoteIPAM = "network-manager.yaml"
)

// sidecarPorts are what opens the port of the remote IPAM (patches/liqo-install/network-manager-service.yaml).
var sidecarPorts = []string{"remote-ipam"}

// sidecarsOf returns what a patch adds to the pod of Liqo's network manager.
func sidecarsOf(file string) (*corev1.PodSpec, error) {
	d := appsv1.Deployment{}
	err := merge(&d, file)
	return &d.Spec.Template.Spec, err
}

// addSidecars makes Liqo's network manager run what a patch adds, of an image.
func addSidecars(d *appsv1.Deployment, file, image string) error {
	ours, err := sidecarsOf(file)
	if err != nil {
		return err
	}
	if err := merge(d, file); err != nil {
		return err
	}
	for _, c := range containers(&d.Spec.Template.Spec) {
		if isOf(ours, *c) {
			c.Image = image
		}
	}
	return nil
}

// removeSidecars undoes addSidecars.
func removeSidecars(d *appsv1.Deployment, file string) error {
	ours, err := sidecarsOf(file)
	if err != nil {
		return err
	}
	spec, is := &d.Spec.Template.Spec, func(c corev1.Container) bool { return isOf(ours, c) }
	spec.InitContainers = emptyIsNil(slices.DeleteFunc(spec.InitContainers, is))
	spec.Containers = slices.DeleteFunc(spec.Containers, is)
	spec.Volumes = emptyIsNil(slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		return slices.ContainsFunc(ours.Volumes, func(added corev1.Volume) bool { return added.Name == v.Name })
	}))
	return nil
}

// isOf reports whether a container is one of those that a patch adds.
func isOf(ours *corev1.PodSpec, c corev1.Container) bool {
	return slices.ContainsFunc(containers(ours), func(added *corev1.Container) bool { return added.Name == c.Name })
}

// removePorts takes the port of the remote IPAM out of the Service of Liqo's network manager.
func removePorts(s *corev1.Service) {
	s.Spec.Ports = slices.DeleteFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return slices.Contains(sidecarPorts, p.Name) })
}

// removeHook takes what lets relayed connections pass out of Liqo's gateway.
func removeHook(d *appsv1.Deployment) error {
	patched := appsv1.Deployment{}
	if err := merge(&patched, "gateway.yaml"); err != nil {
		return err
	}
	for _, ours := range patched.Spec.Template.Spec.Containers {
		for i := range d.Spec.Template.Spec.Containers {
			c := &d.Spec.Template.Spec.Containers[i]
			if c.Name == ours.Name && equality.Semantic.DeepEqual(c.Lifecycle, ours.Lifecycle) {
				c.Lifecycle = nil
			}
		}
	}
	return nil
}

// share is what Liqo's gateway needs to go on while its node is busy.
type share struct {
	requests corev1.ResourceList
	priority string
	flags    []string
}

// gatewayShare returns what the patch gives.
func gatewayShare() (share, error) {
	const file = "gateway-resources.json"
	var s share
	all, err := operations(file)
	for _, o := range all {
		var flag string
		var resources corev1.ResourceRequirements
		switch {
		case strings.HasSuffix(o.Path, "/args/-"):
			err = errors.Join(err, o.into(&flag))
			s.flags = append(s.flags, flag)
		case strings.HasSuffix(o.Path, "/resources"):
			err = errors.Join(err, o.into(&resources))
			s.requests = resources.Requests
		default:
			err = errors.Join(err, o.into(&s.priority))
		}
	}
	if err != nil {
		return share{}, fmt.Errorf("read patch %s: %w", file, err)
	}
	return s, nil
}

// shareAndGateway returns what the patch gives, and the container of Liqo's gateway.
func shareAndGateway(d *appsv1.Deployment) (share, *corev1.Container, error) {
	s, err := gatewayShare()
	if err != nil {
		return share{}, nil, err
	}
	c, err := first(d)
	return s, c, err
}

// addShare gives Liqo's gateway what the patch has. What somebody has chosen for it stays.
func addShare(d *appsv1.Deployment) error {
	s, c, err := shareAndGateway(d)
	if err != nil {
		return err
	}
	spec := &d.Spec.Template.Spec
	if len(c.Resources.Requests) == 0 && len(c.Resources.Limits) == 0 {
		c.Resources.Requests = s.requests
	}
	spec.PriorityClassName = cmp.Or(spec.PriorityClassName, s.priority)
	for _, flag := range s.flags {
		name, _, _ := strings.Cut(flag, "=")
		if !slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, name+"=") }) {
			c.Args = append(c.Args, flag)
		}
	}
	return nil
}

// removeShare undoes addShare.
func removeShare(d *appsv1.Deployment) error {
	s, c, err := shareAndGateway(d)
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(c.Resources.Requests, s.requests) {
		c.Resources.Requests = nil
	}
	if spec := &d.Spec.Template.Spec; spec.PriorityClassName == s.priority {
		spec.PriorityClassName, spec.Priority = "", nil
	}
	c.Args = slices.DeleteFunc(c.Args, func(arg string) bool { return slices.Contains(s.flags, arg) })
	return nil
}

// addRules gives a role the rules of the patch that it has not.
func addRules(role *rbacv1.ClusterRole) error {
	rules, err := additions[rbacv1.PolicyRule]("virtual-kubelet-role.json")
	for _, rule := range rules {
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) }) {
			role.Rules = append(role.Rules, rule)
		}
	}
	return err
}

// removeRules undoes addRules.
func removeRules(role *rbacv1.ClusterRole) error {
	rules, err := additions[rbacv1.PolicyRule]("virtual-kubelet-role.json")
	for _, rule := range rules {
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) })
	}
	return err
}

// managerFlags returns the flags that a patch adds to Liqo's controller manager; image is that of the virtual kubelets, and remoteIPAM
// where they ask for addresses, which the patch of a broker does not say.
func managerFlags(file, image, remoteIPAM string) ([]string, error) {
	flags, err := additions[string](file)
	for i, flag := range flags {
		if name, _, _ := strings.Cut(flag, "="); name == flagImage {
			flag = flagImage + "=" + image
		}
		flags[i] = strings.ReplaceAll(flag, "REMOTE_IPAM", remoteIPAM)
	}
	return flags, err
}

// addFlags gives flags to the first container, and removes what stale selects. The last flag of one name counts, but for those that may
// be repeated.
func addFlags(d *appsv1.Deployment, flags []string, stale func(flag string) bool) error {
	container, err := first(d)
	if err != nil {
		return err
	}
	is := separate(container.Args)
	args := slices.DeleteFunc(slices.Clone(is), func(arg string) bool { return stale(arg) && !slices.Contains(flags, arg) })
	for _, flag := range flags {
		if counts(args, flag) {
			continue
		}
		args = append(slices.DeleteFunc(args, func(arg string) bool { return arg == flag }), flag)
	}
	if !slices.Equal(is, args) {
		container.Args = args
	}
	return nil
}

// separate returns a command line with a flag for each further argument of virtual kubelets: Liqo takes several in one flag, between
// commas (pkg/utils/args/stringlist.go@v0.9.4), and its chart makes use of that.
func separate(args []string) []string {
	var all []string
	for _, arg := range args {
		list, is := strings.CutPrefix(arg, flagExtraArgs+"=")
		if !is {
			all = append(all, arg)
			continue
		}
		for value := range strings.SplitSeq(list, ",") {
			all = append(all, flagExtraArgs+"="+value)
		}
	}
	return all
}

// counts reports whether a flag has its effect among others.
func counts(args []string, flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	last := ""
	for _, arg := range args {
		if arg == flag && name == flagExtraArgs {
			return true
		}
		if strings.HasPrefix(arg, name+"=") {
			last = arg
		}
	}
	return last == flag
}

// stockKubelet makes Liqo's controller manager say which virtual kubelet it has, as Liqo's chart does, if it says nothing any more.
func stockKubelet(d *appsv1.Deployment) error {
	container, err := first(d)
	if err != nil || slices.ContainsFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, flagImage+"=") }) {
		return err
	}
	tag := ImageTag(container.Image)
	if tag == "" {
		return fmt.Errorf("the flag %s of %s was replaced, and its image %s does not say which version of Liqo's virtual kubelet belongs to "+
			"it: set the flag", flagImage, controllerManager, container.Image)
	}
	container.Args = append(container.Args, flagImage+"=ghcr.io/liqotech/virtual-kubelet:"+tag)
	return nil
}

func first(d *appsv1.Deployment) (*corev1.Container, error) {
	if len(d.Spec.Template.Spec.Containers) == 0 {
		return nil, fmt.Errorf("the Deployment %s/%s has no container", d.Namespace, d.Name)
	}
	return &d.Spec.Template.Spec.Containers[0], nil
}

// kubelet is how Liqo's controller manager makes virtual kubelets.
type kubelet struct {
	image            string
	extraArgs        []string
	requests, limits corev1.ResourceList
}

// kubeletOf reads that from its command line; the last flag of one name counts.
func kubeletOf(args []string) (kubelet, error) {
	var k kubelet
	for _, arg := range separate(args) {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case flagImage:
			k.image = value
		case flagExtraArgs:
			k.extraArgs = append(k.extraArgs, value)
		case flagRAMRequests:
			k.requests, err = memory(value)
		case flagRAMLimits:
			k.limits, err = memory(value)
		}
		if err != nil {
			return kubelet{}, fmt.Errorf("read the flag %s of %s: %w", arg, controllerManager, err)
		}
	}
	if k.image == "" {
		return kubelet{}, fmt.Errorf("%s has no flag %s", controllerManager, flagImage)
	}
	return k, nil
}

func memory(text string) (corev1.ResourceList, error) {
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.IsZero() {
		return nil, err //nolint:wrapcheck // The caller says of which flag it is.
	}
	return corev1.ResourceList{corev1.ResourceMemory: quantity}, nil
}

// apply makes the Deployment of a virtual kubelet that exists as Liqo would make it now. Of flags that it has besides, it loses those
// that are ours.
func (k kubelet) apply(spec *appsv1.DeploymentSpec) error {
	if len(spec.Template.Spec.Containers) == 0 {
		return fmt.Errorf("the Deployment of the virtual kubelet has no container")
	}
	c := &spec.Template.Spec.Containers[0]
	c.Image = k.image
	setMemory(&c.Resources.Requests, k.requests)
	setMemory(&c.Resources.Limits, k.limits)
	c.Args = slices.DeleteFunc(c.Args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return name == flagRemoteIPAM && !slices.Contains(k.extraArgs, arg)
	})
	for _, arg := range k.extraArgs {
		if !slices.Contains(c.Args, arg) {
			c.Args = append(c.Args, arg)
		}
	}
	return nil
}

// setMemory sets the memory in a list, or removes it.
func setMemory(in *corev1.ResourceList, to corev1.ResourceList) {
	quantity, wanted := to[corev1.ResourceMemory]
	switch {
	case !wanted:
		delete(*in, corev1.ResourceMemory)
		if len(*in) == 0 {
			*in = nil
		}
	case *in == nil:
		*in = corev1.ResourceList{corev1.ResourceMemory: quantity}
	default:
		(*in)[corev1.ResourceMemory] = quantity
	}
}

func emptyIsNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
