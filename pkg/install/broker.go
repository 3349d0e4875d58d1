// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	podsecurity "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/deploy"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// The daemon, as deploy/broker has it.
const (
	// BrokerNamespace is its namespace, and BrokerName the name of its Deployment and its image.
	BrokerNamespace = "liqo-broker"
	BrokerName      = "liqo-broker"
	labelName       = "app.kubernetes.io/name"
	kindDeployment  = "Deployment"
	// kubeletImage is the name of the image of our virtual kubelets.
	kubeletImage = liqo.VirtualKubeletImage
)

// brokerSteps are those of an installation: what Liqo asks is there before Liqo is told to ask it, and our virtual kubelets run before
// namespace liqo is offered to anybody.
func (i *Installer) brokerSteps() ([]step, error) {
	base, err := i.manifests()
	if err != nil {
		return nil, err
	}
	offering, err := i.offering()
	if err != nil {
		return nil, err
	}
	flags, err := managerFlags("controller-manager-broker.json", i.options.image(kubeletImage), "")
	if err != nil {
		return nil, err
	}
	withFlags := func(d *appsv1.Deployment) error { return addFlags(d, flags, outdated) }
	return slices.Concat(i.daemonSteps(base), i.pulling(liqoNamespace), []step{
		{
			"let Liqo's gateway pass what it relays, and keep its share of a busy node",
			patching(i.objects, deployment(gateway), func(d *appsv1.Deployment) error {
				if err := merge(d, "gateway.yaml"); err != nil {
					return err
				}
				return addShare(d)
			}),
			i.rollout(liqoNamespace, gateway),
		},
		i.beside("run the remote IPAM beside Liqo's network manager", patchIPAMGuard, patchRemoteIPAM),
		{
			"open the port of the remote IPAM",
			patching(i.objects, managerService(), func(s *corev1.Service) error { return merge(s, "network-manager-service.yaml") }), nil,
		},
		i.rightsOfVirtualKubelets(),
		i.tellingOfMetrics(i.configuring("have Liqo ask the broker, and use its virtual kubelet", withFlags)),
		i.virtualKubelets("give the peerings that exist the broker's virtual kubelet", true, withFlags),
		i.applying("offer the remote IPAM to the peers", offering, i.allReached),
	}), nil
}

// daemonSteps are those that run the daemon. One that is a release of Helm is only waited for: Helm would take what is changed beside it
// for drift, and undo it.
func (i *Installer) daemonSteps(base []*unstructured.Unstructured) []step {
	running := func(ctx context.Context) error {
		if err := i.rollout(GuardName, GuardName)(ctx); err != nil {
			return err
		}
		return i.rollout(BrokerNamespace, BrokerName)(ctx)
	}
	if i.ofHelm {
		return []step{{"wait for the daemon and the guard, which Helm runs", nothing, running}}
	}
	kinds := kindsOf(base)
	return []step{
		i.applying("create the kinds of the broker", base[:kinds], i.established(base[:kinds])),
		{"run the daemon and the guard", func(ctx context.Context) ([]change, error) {
			wanted, err := i.withChoices(ctx, base[kinds:])
			if err != nil {
				return nil, err
			}
			pull, err := i.pullSecrets(ctx, BrokerNamespace, GuardName)
			if err != nil {
				return nil, err
			}
			return i.apply(ctx, append(pull, wanted...))
		}, running},
		i.policies("add the rules that hold without the daemon", "admission"),
	}
}

// kindsOf returns how many objects are there for others: the namespaces and kinds that manifests begin with.
func kindsOf(base []*unstructured.Unstructured) int {
	return slices.IndexFunc(base, func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "Namespace" && o.GetKind() != "CustomResourceDefinition"
	})
}

// brokerUndo are the steps back: nothing is offered any more before Liqo's own virtual kubelets come, and Liqo asks nobody any more
// before the daemon goes.
func (i *Installer) brokerUndo() ([]step, error) {
	base, err := i.manifests()
	if err != nil {
		return nil, err
	}
	admission, err := build("admission")
	if err != nil {
		return nil, err
	}
	offering, err := i.offering()
	if err != nil {
		return nil, err
	}
	steps := []step{i.removing("take back what is offered of namespace liqo", offering, i.nothingReached)}
	if i.trading {
		steps = append(steps,
			i.configuring("have Liqo ask the connector, and go on with our virtual kubelet", overToConnector),
			i.virtualKubelets("have the virtual kubelets ask no broker", true, overToConnector),
		)
	} else {
		steps = append(steps,
			i.configuring("have Liqo ask nobody, and use its own virtual kubelet", withoutFlags),
			i.virtualKubelets("give the peerings Liqo's virtual kubelet", false, withoutFlags),
		)
	}
	steps = append(append(steps, i.daemonUndo(base, admission)...),
		step{"close the port of the remote IPAM", i.withoutPort(), nil},
		step{"remove the remote IPAM from Liqo's network manager", i.withoutSidecars, i.rollout(liqoNamespace, networkManager)},
		step{"let Liqo's gateway be as it was", i.stockGateway(), i.rollout(liqoNamespace, gateway)},
	)
	if i.trading { // Its virtual kubelets stay, with their rights and with what they have written.
		return append(steps, step{"remove what peers were told by the broker", i.told, nil}), nil
	}
	return append(steps, i.noRightsOfVirtualKubelets(), step{"remove what the broker has written", i.traces, nil}), nil
}

// daemonUndo are the steps back from daemonSteps.
func (i *Installer) daemonUndo(base, admission []*unstructured.Unstructured) []step {
	return []step{
		i.leaving("remove the rules that hold without the daemon", admission, false),
		i.leaving("remove the daemon, its kinds and the guard", base, true),
	}
}

// withoutPort returns what closes the port of the remote IPAM.
func (i *Installer) withoutPort() func(context.Context) ([]change, error) {
	return patching(i.objects, managerService(), func(s *corev1.Service) error { removePorts(s); return nil })
}

// withoutHook returns what takes the hook of a broker from Liqo's gateway.
func (i *Installer) withoutHook() func(context.Context) ([]change, error) {
	return patching(i.objects, deployment(gateway), removeHook)
}

// stockGateway returns what takes from Liqo's gateway all that a broker has given it. Its share stays where a cluster trades.
func (i *Installer) stockGateway() func(context.Context) ([]change, error) {
	return patching(i.objects, deployment(gateway), func(d *appsv1.Deployment) error {
		if err := removeHook(d); err != nil || i.trading {
			return err
		}
		return removeShare(d)
	})
}

// shareOfGateway is the step that has Liqo's gateway go on while its node is busy, if the cluster has one: Liqo's chart can be without.
func (i *Installer) shareOfGateway() step {
	return i.orWithoutGateway(step{
		"keep a share of a busy node for Liqo's gateway", patching(i.objects, deployment(gateway), addShare), i.rollout(liqoNamespace, gateway),
	})
}

// noShareOfGateway undoes it.
func (i *Installer) noShareOfGateway() step {
	return i.orWithoutGateway(step{
		"take its share from Liqo's gateway", patching(i.objects, deployment(gateway), removeShare), i.rollout(liqoNamespace, gateway),
	})
}

// orWithoutGateway returns a step that does nothing where there is no gateway.
func (i *Installer) orWithoutGateway(s step) step {
	return step{
		s.name, func(ctx context.Context) ([]change, error) {
			changes, err := s.changes(ctx)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return changes, err
		}, func(ctx context.Context) error { return client.IgnoreNotFound(s.settled(ctx)) },
	}
}

// overToConnector has Liqo's controller manager ask the connector in the place of the broker, and no broker for addresses. What our
// virtual kubelet needs stays. Liqo goes on to ask somebody else, if people have said so.
func overToConnector(d *appsv1.Deployment) error {
	container, err := first(d)
	if err != nil {
		return err
	}
	ofBroker := func(flag string) bool {
		return strings.HasPrefix(flag, flagPlugin+"="+brokerPlugin) || strings.HasPrefix(flag, flagOfRemoteIPAM)
	}
	var add []string
	if !slices.ContainsFunc(container.Args, func(flag string) bool { return isOtherPlugin(flag) && !ofBroker(flag) }) {
		add = []string{flagPlugin + "=" + connectorPlugin}
	}
	return addFlags(d, add, ofBroker)
}

// manifests returns the objects of the daemon, with the images and modes that were chosen.
func (i *Installer) manifests() ([]*unstructured.Unstructured, error) {
	base, err := build(".")
	if err != nil {
		return nil, err
	}
	return base, i.setImages(base, BrokerName)
}

// setImages gives Deployments of ours one of the images that were chosen, and the modes.
func (i *Installer) setImages(base []*unstructured.Unstructured, image string) error {
	for _, object := range base {
		if object.GetKind() != kindDeployment {
			continue
		}
		err := edit(object, func(d *appsv1.Deployment) error {
			container, err := first(d)
			if err != nil {
				return err
			}
			container.Image = i.options.image(image)
			i.pullBy(&d.Spec.Template.Spec)
			container.Args = slices.DeleteFunc(container.Args, func(arg string) bool {
				return isMode(arg) && !slices.Contains(i.options.Modes, strings.TrimPrefix(arg, modePrefix))
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// offering returns what offers the remote IPAM to the peers.
func (i *Installer) offering() ([]*unstructured.Unstructured, error) {
	text, err := deploy.Files.ReadFile("liqo/namespaceoffloading.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the offering: %w", err)
	}
	return decode(text)
}

// ownFlag reports whether a flag of Liqo's controller manager is one that an installation adds, of this or another image or address.
func ownFlag(flag string) bool {
	for _, file := range []string{"controller-manager-broker.json", "controller-manager-consumer.json"} {
		flags, err := additions[string](file)
		if err != nil {
			continue // The steps that add them have failed then.
		}
		if slices.Contains(flags, flag) {
			return true
		}
	}
	name, value, _ := strings.Cut(flag, "=")
	return outdated(flag) || name == flagExtraArgs && strings.HasPrefix(value, flagRemoteIPAM+"=")
}

// outdated reports whether a flag is one that an installation replaces by another value: the image of our virtual kubelets. A cluster may
// be a broker and the consumer of several others, whose flags stay.
func outdated(flag string) bool {
	image, is := strings.CutPrefix(flag, flagImage+"=")
	return is && liqo.OwnVirtualKubelet(image)
}

// applying is a step that makes objects as they are given.
func (i *Installer) applying(name string, wanted []*unstructured.Unstructured, settled func(context.Context) error) step {
	return step{name, func(ctx context.Context) ([]change, error) { return i.apply(ctx, wanted) }, settled}
}

// removing is a step that deletes objects.
func (i *Installer) removing(name string, unwanted []*unstructured.Unstructured, settled func(context.Context) error) step {
	return step{name, func(ctx context.Context) ([]change, error) { return i.remove(ctx, unwanted) }, settled}
}

// leaving is a step that deletes objects, but for the guard where somebody else needs it, and waits until they are gone if that is wanted.
func (i *Installer) leaving(name string, unwanted []*unstructured.Unstructured, wait bool) step {
	changes := func(ctx context.Context) ([]change, error) {
		all, err := i.withoutGuard(ctx, unwanted)
		if err != nil {
			return nil, err
		}
		return i.remove(ctx, all)
	}
	if !wait {
		return step{name, changes, nil}
	}
	return step{name, changes, func(ctx context.Context) error {
		all, err := i.withoutGuard(ctx, unwanted)
		if err != nil {
			return err
		}
		return i.gone(ctx, all)
	}}
}

// policies is the step that adds what holds also while nobody answers, where Kubernetes has it.
func (i *Installer) policies(name, folder string) step {
	return step{name, func(ctx context.Context) ([]change, error) {
		wanted, unwanted, err := i.rules(ctx, folder)
		if err != nil {
			return nil, err
		}
		changes, err := i.remove(ctx, unwanted)
		if err != nil {
			return nil, err
		}
		applied, err := i.apply(ctx, wanted)
		return append(changes, applied...), err
	}, nil}
}

// rules returns what holds also while nobody answers, and what the operator does not want of it; nothing where Kubernetes has no such
// policies.
func (i *Installer) rules(ctx context.Context, folder string) (wanted, unwanted []*unstructured.Unstructured, err error) {
	there, err := i.serves(policyKind(), "v1")
	if err != nil || !there {
		return nil, nil, err
	}
	if wanted, err = build(folder); err != nil {
		return nil, nil, err
	}
	if unwanted, err = i.excepted(ctx, wanted); err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(wanted, func(o *unstructured.Unstructured) bool { return slices.Contains(unwanted, o) }), unwanted, nil
}

// excepted returns those of the admission rules that the operator does not want: what bounds the pods of consumers, where they are admitted
// at the level privileged. The rule has no parameter for this: with the last policy whose parameter is a ConfigMap, an API server stops to
// watch ConfigMaps, and does not begin again when there is a new one
// (k8s.io/apiserver@v0.34.1/pkg/admission/plugin/policy/generic/policy_source.go).
func (i *Installer) excepted(ctx context.Context, rules []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	const rule = "pod-security.brokering.liqo.io"
	var level corev1.ConfigMap
	err := i.Get(ctx, client.ObjectKey{Namespace: GuardName, Name: GuardName}, &level)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the Pod Security level: %w", err)
	}
	if level.Data["level"] != string(podsecurity.LevelPrivileged) {
		return nil, nil
	}
	var unwanted []*unstructured.Unstructured
	for _, o := range rules {
		if o.GetName() == rule {
			unwanted = append(unwanted, o)
		}
	}
	return unwanted, nil
}

// established returns what waits until the API server serves kinds.
func (i *Installer) established(kinds []*unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, kind := range kinds {
			if kind.GetKind() != "CustomResourceDefinition" {
				continue
			}
			live := kind.DeepCopy()
			if err := i.Get(ctx, client.ObjectKeyFromObject(kind), live); err != nil {
				return fmt.Errorf("read %s: %w", describe(kind), err)
			}
			conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
			if !slices.ContainsFunc(conditions, func(c any) bool {
				condition, ok := c.(map[string]any)
				return ok && condition["type"] == "Established" && condition["status"] == "True"
			}) {
				return fmt.Errorf("%s is not established", describe(kind))
			}
		}
		return nil
	}
}

// rollout returns what waits until a Deployment runs as it should.
func (i *Installer) rollout(namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return i.rolledOut(ctx, client.ObjectKey{Namespace: namespace, Name: name})
	}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: name}}
}

// managerService is the Service of Liqo's network manager.
func managerService() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: networkManager}}
}

// namespaceMaps returns what is offered to peers, and by peers.
func (i *Installer) namespaceMaps(ctx context.Context) ([]v09.NamespaceMap, error) {
	var maps v09.NamespaceMapList
	if err := i.List(ctx, &maps); err != nil {
		return nil, fmt.Errorf("list NamespaceMaps: %w", err)
	}
	return maps.Items, nil
}

// managerArgs returns the command line of Liqo's controller manager.
func (i *Installer) managerArgs(ctx context.Context) ([]string, error) {
	manager := deployment(controllerManager)
	if err := i.Get(ctx, client.ObjectKeyFromObject(manager), manager); err != nil {
		return nil, fmt.Errorf("read %s: %w", i.describeObject(manager), err)
	}
	container, err := first(manager)
	if err != nil {
		return nil, err
	}
	return separate(container.Args), nil
}

// nothingReached returns an error while namespace liqo is offered to a peer, or while a virtual kubelet of Liqo would reflect it to one.
// With force, what a peer says that does not answer is not waited for.
func (i *Installer) nothingReached(ctx context.Context) error {
	maps, err := i.namespaceMaps(ctx)
	if err != nil {
		return err
	}
	for n := range maps {
		switch m := &maps[n]; {
		case v09.Wanted(m, liqoNamespace):
			return fmt.Errorf("namespace %s is still offered to peer %s", liqoNamespace, m.Name)
		case !i.options.Force && v09.Reflected(m, liqoNamespace):
			return fmt.Errorf("peer %s still has what it was offered of namespace %s (--force does not wait for it)", m.Name, liqoNamespace)
		}
	}
	return nil
}

// allReached returns an error unless namespace liqo is offered to all peers.
func (i *Installer) allReached(ctx context.Context) error {
	maps, err := i.namespaceMaps(ctx)
	if err != nil {
		return err
	}
	_, err = i.eachVirtualNode(ctx, func(n *v09.VirtualNode) ([]change, error) {
		if v09.HasNode(n) && !slices.ContainsFunc(maps,
			func(m v09.NamespaceMap) bool { return m.Namespace == n.Namespace && v09.Wanted(&m, liqoNamespace) }) {
			return nil, fmt.Errorf("peer %s has not been offered the remote IPAM yet", sheet.Plain(v09.StandsFor(n).Name))
		}
		return nil, nil
	})
	return err
}

// withoutFlags removes from Liqo's controller manager what an installation adds.
func withoutFlags(d *appsv1.Deployment) error {
	return errors.Join(addFlags(d, nil, ownFlag), stockKubelet(d))
}

// configuring is the step that changes the flags of Liqo's controller manager.
func (i *Installer) configuring(name string, flags func(*appsv1.Deployment) error) step {
	return step{name, patching(i.objects, deployment(controllerManager), flags), i.rollout(liqoNamespace, controllerManager)}
}

// tellingOfMetrics is a step that has Liqo use our virtual kubelet, and says what becomes of the metrics of virtual kubelets where these
// are read.
func (i *Installer) tellingOfMetrics(s step) step {
	changes := s.changes
	s.changes = func(ctx context.Context) ([]change, error) {
		all, err := changes(ctx)
		if err != nil || len(all) == 0 {
			return all, err
		}
		args, err := i.managerArgs(ctx)
		if slices.Contains(args, "--kubelet-metrics-enabled=true") {
			fmt.Fprintln(i.run.out, "      metrics of virtual kubelets are then read over TLS, by whoever may read those of nodes: Liqo's own "+
				"PodMonitor of them is refused")
		}
		return all, err
	}
	return s
}

// rightsOfVirtualKubelets is the step that gives virtual kubelets the rights that ours need besides.
func (i *Installer) rightsOfVirtualKubelets() step {
	return step{"give virtual kubelets the rights that the broker's needs", patching(i.objects, virtualKubeletRights(), addRules), nil}
}

func (i *Installer) noRightsOfVirtualKubelets() step {
	return step{"take these rights from virtual kubelets", patching(i.objects, virtualKubeletRights(), removeRules), nil}
}

func virtualKubeletRights() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: virtualKubeletRole}}
}

// virtualKubelets is the step that makes the virtual kubelets that exist what Liqo's controller manager would make now: it reads its
// flags only when it makes one. These are as the step before makes them, by the function flags. The nodes are signed then, or not
// (liqo.LabelVirtualKubelet).
func (i *Installer) virtualKubelets(name string, signed bool, flags func(*appsv1.Deployment) error) step {
	changes := func(ctx context.Context) ([]change, error) {
		manager := deployment(controllerManager)
		if err := i.Get(ctx, client.ObjectKeyFromObject(manager), manager); err != nil {
			return nil, fmt.Errorf("read %s: %w", i.describeObject(manager), err)
		}
		if err := flags(manager); err != nil {
			return nil, err
		}
		container, err := first(manager)
		if err != nil {
			return nil, err
		}
		k, err := kubeletOf(container.Args)
		if err != nil {
			return nil, err
		}
		// What Liqo would make from now on, those that exist get too.
		return i.eachVirtualNode(ctx, func(n *v09.VirtualNode) ([]change, error) {
			_, spec := v09.KubeletDeployment(n)
			if spec == nil {
				return nil, nil
			}
			return i.mutateRead(n, func() error {
				if signed {
					i.pullBy(&spec.Template.Spec)
				} else {
					pullAsBefore(&spec.Template.Spec)
				}
				return k.apply(spec)
			})
		})
	}
	settled := func(ctx context.Context) error {
		_, err := i.eachVirtualNode(ctx, func(n *v09.VirtualNode) ([]change, error) { return nil, i.kubeletRuns(ctx, n, signed) })
		return err
	}
	return step{name, changes, settled}
}

// eachVirtualNode calls a function for all virtual nodes but those that are about to go, which Liqo does not change any more, and returns
// what it returns.
func (i *Installer) eachVirtualNode(ctx context.Context, do func(*v09.VirtualNode) ([]change, error)) ([]change, error) {
	var nodes v09.VirtualNodeList
	if err := i.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list virtual nodes: %w", err)
	}
	var all []change
	for n := range nodes.Items {
		if !nodes.Items[n].DeletionTimestamp.IsZero() {
			continue
		}
		changes, err := do(&nodes.Items[n])
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return all, nil
}

// kubeletRuns returns an error unless the virtual kubelet of a node is the one that the node says, and has signed the node if it is to. If
// it is not, no pod of another image is left that could: the step that removes traces takes the sign off.
func (i *Installer) kubeletRuns(ctx context.Context, n *v09.VirtualNode, signed bool) error {
	name, spec := v09.KubeletDeployment(n)
	if spec == nil {
		return nil
	}
	// Liqo has to have taken the change over into the Deployment, and its pods have to follow.
	at := client.ObjectKey{Namespace: n.Namespace, Name: name}
	var d appsv1.Deployment
	if err := i.Get(ctx, at, &d); err != nil {
		return fmt.Errorf("read Deployment %s: %w", at, err)
	}
	is, err := first(&d)
	if err != nil {
		return err
	}
	if want := spec.Template.Spec.Containers[0]; is.Image != want.Image || !slices.Equal(is.Args, want.Args) {
		return fmt.Errorf("the Deployment %s of Liqo is as before", at)
	}
	if err := i.rolledOut(ctx, at); err != nil {
		return err
	}
	// A pod that starts signs the node when it takes it over: the sign says that ours is the one that writes it.
	if !v09.HasNode(n) {
		return nil
	}
	if signed {
		var node corev1.Node
		if err := i.Get(ctx, client.ObjectKey{Name: n.Name}, &node); err != nil {
			return fmt.Errorf("read node %s: %w", n.Name, err)
		}
		if node.Annotations[liqo.LabelVirtualKubelet] != "" {
			return nil
		}
	}
	// Without the sign, or where none is wanted, a pod of the image before may still be there and could write the node again.
	others, err := i.otherKubelets(ctx, n, spec.Template.Spec.Containers[0].Image)
	switch {
	case err != nil:
		return err
	case others != "":
		return fmt.Errorf("the virtual kubelet of node %s waits for the end of pods of another image: %s", n.Name, others)
	case signed:
		return fmt.Errorf("the virtual kubelet of node %s has not taken it over yet", n.Name)
	}
	return nil
}

// otherKubelets returns the names of the pods of virtual kubelets of another image that still run for a node; empty if there are none.
func (i *Installer) otherKubelets(ctx context.Context, n *v09.VirtualNode, image string) (string, error) {
	var pods corev1.PodList
	if err := i.List(ctx, &pods, client.InNamespace(n.Namespace),
		client.MatchingLabelsSelector{Selector: v09.VirtualKubeletSelector()}); err != nil {
		return "", fmt.Errorf("list the virtual kubelets of node %s: %w", n.Name, err)
	}
	var others []string
	for p := range pods.Items {
		if pod := &pods.Items[p]; len(pod.Spec.Containers) > 0 && pod.Spec.Containers[0].Image != image {
			others = append(others, pod.Name)
		}
	}
	return strings.Join(others, ", "), nil
}

// patching returns what computes the change that a function makes to an object, which need not have been read.
func patching[T client.Object](o objects, object T, to func(T) error) func(context.Context) ([]change, error) {
	return func(ctx context.Context) ([]change, error) {
		fresh, _ := object.DeepCopyObject().(T)
		return o.mutate(ctx, fresh, func() error { return to(fresh) })
	}
}

// beside is the step that runs what patches add beside Liqo's network manager.
func (i *Installer) beside(name string, files ...string) step {
	return step{name, patching(i.objects, deployment(networkManager), func(d *appsv1.Deployment) error {
		for _, file := range files {
			if err := addSidecars(d, file, i.options.image(sidecarImage)); err != nil {
				return err
			}
		}
		i.pullBy(&d.Spec.Template.Spec)
		return nil
	}), i.rollout(liqoNamespace, networkManager)}
}

// alone returns what takes from Liqo's network manager what patches add beside it.
func (i *Installer) alone(files ...string) func(context.Context) ([]change, error) {
	return patching(i.objects, deployment(networkManager), func(d *appsv1.Deployment) error {
		for _, file := range files {
			if err := removeSidecars(d, file); err != nil {
				return err
			}
		}
		if slices.Contains(files, patchIPAMGuard) { // Nothing of ours is left in the pod.
			pullAsBefore(&d.Spec.Template.Spec)
		}
		return nil
	})
}

// withoutSidecars returns the changes that leave Liqo's network manager alone, but for what closes Liqo's IPAM where somebody else needs
// it: who trades.
func (i *Installer) withoutSidecars(ctx context.Context) ([]change, error) {
	trades, err := i.trades(ctx)
	if err != nil {
		return nil, err
	}
	files := []string{patchRemoteIPAM}
	if !trades {
		files = append(files, patchIPAMGuard)
	}
	return i.alone(files...)(ctx)
}

// told returns the changes that remove what the broker has told consumers and virtual kubelets.
func (i *Installer) told(ctx context.Context) ([]change, error) {
	return i.toldPeers(ctx, liqo.TenantNamespaceSelector(), []toldAs{
		{remoteipam.DirectName, &corev1.ConfigMapList{}},
		{remoteipam.AnnouncementName, &corev1.ConfigMapList{}},
		{remoteipam.AnnouncementName, &rbacv1.RoleBindingList{}},
	})
}

// toldAs is the name and the kind of an object by which peers are told something.
type toldAs struct {
	name string
	list client.ObjectList
}

// toldPeers returns the changes that remove objects by which peers were told something.
func (i *Installer) toldPeers(ctx context.Context, ofTenants labels.Selector, objects []toldAs) ([]change, error) {
	var all []change
	// They are in the tenant namespaces of the peers; objects of these names elsewhere are of somebody else.
	var tenants corev1.NamespaceList
	if err := i.List(ctx, &tenants, client.MatchingLabelsSelector{Selector: ofTenants}); err != nil {
		return nil, fmt.Errorf("list the tenant namespaces: %w", err)
	}
	inTenant := map[string]bool{}
	for n := range tenants.Items {
		inTenant[tenants.Items[n].Name] = true
	}
	for _, told := range objects {
		if err := i.List(ctx, told.list, client.MatchingFields{"metadata.name": told.name}); err != nil {
			return nil, fmt.Errorf("list objects %s: %w", told.name, err)
		}
		err := meta.EachListItem(told.list, func(object runtime.Object) error {
			if object, ok := object.(client.Object); ok && inTenant[object.GetNamespace()] {
				all = append(all, i.deletion(object))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read objects %s: %w", told.name, err)
		}
	}
	return all, nil
}

// traces returns the changes that remove what the broker and its virtual kubelets have written beside objects of their own: what
// consumers and virtual kubelets were told, leases of virtual kubelets, taints and signs of nodes, the paths of pods, and the Secrets
// with which images were pulled.
func (i *Installer) traces(ctx context.Context) ([]change, error) {
	all, err := i.told(ctx)
	if err != nil {
		return nil, err
	}
	// Annotations of pods would go on to tell of paths that nobody keeps up to date.
	paths, err := i.paths(ctx)
	if err != nil {
		return nil, err
	}
	copies, err := i.noPullSecrets(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.Concat(all, paths, copies)
	// Leases, taints and signs are what our virtual kubelets have left at nodes that Liqo's own take over.
	changes, err := i.eachVirtualNode(ctx, func(n *v09.VirtualNode) ([]change, error) {
		lease := &unstructured.Unstructured{}
		lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		lease.SetNamespace(n.Namespace)
		lease.SetName(n.Name)
		leases, err := i.remove(ctx, []*unstructured.Unstructured{lease})
		if err != nil {
			return nil, err
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		if err := i.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return leases, client.IgnoreNotFound(err)
		}
		marks, err := i.mutate(ctx, node, func() error {
			untaint(node)
			// Liqo's virtual kubelet keeps the sign if the last write of ours and its first cross.
			delete(node.Labels, liqo.LabelVirtualKubelet)
			delete(node.Annotations, liqo.LabelVirtualKubelet)
			return nil
		})
		return append(leases, marks...), err
	})
	return append(all, changes...), err
}

// untaint takes the taint off a virtual node by which the broker keeps new pods from a provider that was cordoned or drained.
func untaint(node *corev1.Node) {
	node.Spec.Taints = emptyIsNil(slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == liqo.TaintCordoned }))
}

// paths returns the changes that take the annotations off pods by which their paths are told.
func (i *Installer) paths(ctx context.Context) ([]change, error) {
	var pods corev1.PodList
	if err := i.List(ctx, &pods); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var all []change
	for n := range pods.Items {
		pod := &pods.Items[n]
		if pod.Annotations[liqo.AnnotationPath] == "" {
			continue
		}
		// Whoever writes the pod at the same time does not matter, but another pod of its name does.
		patch := fmt.Appendf(nil, `{"metadata": {"uid": %q, "annotations": {%q: null, %q: null, %q: null, %q: null}}}`,
			pod.UID, liqo.AnnotationPath, liqo.AnnotationProvider, liqo.AnnotationProviderName, liqo.AnnotationPathSince)
		all = append(all, change{verb: "patch", object: i.describeObject(pod), do: func(ctx context.Context) error {
			err := i.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch), fieldOwner)
			if apierrors.IsConflict(err) {
				return nil // It is another pod.
			}
			return client.IgnoreNotFound(err)
		}})
	}
	return all, nil
}
