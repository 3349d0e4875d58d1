// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	networkingv1beta1 "github.com/liqotech/liqo/apis/networking/v1beta1"
	"github.com/liqotech/liqo/apis/networking/v1beta1/firewall"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// TestLabels compares labels and annotations with what Liqo 1.x calls them: those that both lines have, and those of 1.x alone.
func TestLabels(t *testing.T) {
	meta, target := constants(t, "pkg/virtualKubelet/forge/meta.go"), constants(t, "pkg/firewall/label.go")
	gateway := constants(t, "pkg/gateway/label.go")
	for _, name := range []struct{ got, want string }{
		{liqo.LabelRemoteClusterID, consts.RemoteClusterID},
		{liqo.LabelNodeType, consts.TypeLabel}, {liqo.NodeTypeVirtual, consts.TypeNode},
		{liqo.LabelManagedBy, consts.ManagedByLabelKey}, {liqo.ManagedByShadowPod, consts.ManagedByShadowPodValue},
		{liqo.ManagedByShadowEndpointSlice, consts.ManagedByShadowEndpointSliceValue},
		{api.EndpointsReflected, constants(t, "pkg/virtualKubelet/forge/endpointslices.go")["EndpointSliceManagedBy"]},
		{api.Tunnel, constants(t, "pkg/gateway/tunnel/const.go")["TunnelInterfaceName"]},
		{liqo.LabelReplicated, consts.ReplicationStatusLabel},
		{liqo.LabelReplication, consts.ReplicationRequestedLabel}, {liqo.ReplicationValue, consts.ReplicationRequestedLabelValue},
		{liqo.LabelOrigin, consts.ReplicationOriginLabel}, {liqo.LabelDestination, consts.ReplicationDestinationLabel},
		{liqo.OffloadingName, consts.DefaultNamespaceOffloadingName},
		{liqo.IdentityKey, consts.ClusterIDConfigMapKey}, {liqo.IdentityName, "liqo-" + consts.ClusterIDConfigMapNameLabelValue},

		{liqo.LabelTenantNamespace, consts.TenantNamespaceLabel},
		{api.LabelOriginCluster, meta["LiqoOriginClusterIDKey"]}, {api.LabelDestinationCluster, meta["LiqoDestinationClusterIDKey"]},
		{liqo.LabelOriginNodeV1, meta["LiqoOriginClusterNodeName"]},
		{api.AnnotationCreateNode, consts.CreateVirtualNodeAnnotation}, {api.LabelSlice, consts.ResourceSliceNameLabelKey},
		{api.AnnotationAPIServer, consts.APIServerSupportAnnotation}, {api.APIServerDisabled, consts.APIServerSupportAnnotationValueDisabled},
		{api.AnnotationCordon, consts.CordonResourceAnnotation}, {api.AnnotationCordonTenant, consts.CordonTenantAnnotation},
		{api.LabelWebhook, consts.WebhookResourceLabelKey}, {api.AnnotationWebhookService, consts.WebhookServiceNameAnnotationKey},
		{api.LabelIdentityType, consts.IdentityTypeLabelKey}, {api.AnnotationRemoteTenant, consts.RemoteTenantNamespaceAnnotKey},
		{api.LabelNonce, consts.NonceSecretLabelKey}, {api.LabelSignedNonce, consts.SignedNonceSecretLabelKey},
		{api.LabelGatewayResource, consts.GatewayResourceLabel},
		{api.LabelNetworkType, consts.NetworkTypeLabelKey},
		{api.NetworkTypePods, string(consts.NetworkTypePodCIDR)}, {api.NetworkTypeServices, string(consts.NetworkTypeServiceCIDR)},
		{api.NetworkTypeExternal, string(consts.NetworkTypeExternalCIDR)}, {api.NetworkTypeInternal, string(consts.NetworkTypeInternalCIDR)},
		{api.LabelIPType, consts.IPTypeLabelKey}, {api.IPTypeProxy, consts.IPTypeAPIServerProxy},
		{api.LabelFirewallCategory, target["FirewallCategoryTargetKey"]}, {api.FirewallCategoryGateway, gateway["FirewallCategoryGwTargetValue"]},
		{api.LabelFirewallSubcategory, target["FirewallSubCategoryTargetKey"]},
		{api.FirewallAllGateways, gateway["FirewallSubCategoryAllGatewaysTargetValue"]},
		{api.LabelFirewallUnique, target["FirewallUniqueTargetKey"]},
	} {
		if name.got != name.want || name.got == "" {
			t.Errorf("%q is called %q in Liqo", name.got, name.want)
		}
	}
}

// TestNamesOfBothLines holds that what package liqo does by names of its own, it does to objects of Liqo 1.x too.
func TestNamesOfBothLines(t *testing.T) {
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "web-1", Labels: map[string]string{consts.RemoteClusterID: "a", consts.SchedulingLiqoLabel: consts.SchedulingLiqoLabelValue},
		Annotations: map[string]string{
			consts.RemoteNamespaceManagedByAnnotationKey: "tenant/map", consts.RemoteNamespaceOriginalNameAnnotationKey: "web",
		},
	}}
	if of, is := liqo.TwinOf(twin); of != "a" || !is || liqo.OriginalName(twin) != "web" || !liqo.Open(twin) {
		t.Errorf("a twin namespace of a: TwinOf() = %q, %t, OriginalName() = %q, Open() = %t", of, is, liqo.OriginalName(twin), liqo.Open(twin))
	}
	pod := &corev1.Pod{}
	liqo.KeepHere(pod)
	liqo.Admit(pod)
	if pod.Annotations[consts.SkipReflectionAnnotationKey] != "true" || pod.Spec.Tolerations[0].Key != consts.VirtualNodeTolerationKey {
		t.Errorf("a pod that is kept here and admitted to virtual nodes: %v, %v", pod.Annotations, pod.Spec.Tolerations)
	}
}

// TestValues compares the values that fields may have.
func TestValues(t *testing.T) {
	for _, value := range []struct{ got, want string }{
		{string(api.RoleConsumer), string(liqov1beta1.ConsumerRole)}, {string(api.RoleProvider), string(liqov1beta1.ProviderRole)},
		{string(api.RoleConsumerAndProvider), string(liqov1beta1.ConsumerAndProviderRole)},
		{string(api.RoleUnknown), string(liqov1beta1.UnknownRole)},
		{string(api.APIServerStatus), string(liqov1beta1.APIServerStatusCondition)},
		{string(api.NetworkConnectionStatus), string(liqov1beta1.NetworkConnectionStatusCondition)},
		{string(api.AuthIdentityControlPlaneStatus), string(liqov1beta1.AuthIdentityControlPlaneStatusCondition)},
		{string(api.AuthTenantStatus), string(liqov1beta1.AuthTenantStatusCondition)},
		{string(api.StatusNone), string(liqov1beta1.ConditionStatusNone)},
		{string(api.StatusPending), string(liqov1beta1.ConditionStatusPending)},
		{string(api.StatusEstablished), string(liqov1beta1.ConditionStatusEstablished)},
		{string(api.StatusError), string(liqov1beta1.ConditionStatusError)},
		{string(api.StatusReady), string(liqov1beta1.ConditionStatusReady)},
		{string(api.StatusNotReady), string(liqov1beta1.ConditionStatusNotReady)},
		{string(api.StatusSomeNotReady), string(liqov1beta1.ConditionStatusSomeNotReady)},

		{string(api.KeysExchange), string(authv1beta1.KeysExchange)},
		{string(api.TolerateNoHandshake), string(authv1beta1.TolerateNoHandshake)},
		{string(api.TenantActive), string(authv1beta1.TenantConditionActive)},
		{string(api.TenantCordoned), string(authv1beta1.TenantConditionCordoned)},
		{string(api.TenantDrained), string(authv1beta1.TenantConditionDrained)},
		{string(api.IdentityControlPlane), string(authv1beta1.ControlPlaneIdentityType)},
		{string(api.IdentityResourceSlice), string(authv1beta1.ResourceSliceIdentityType)},
		{api.SliceClassDefault, string(authv1beta1.ResourceSliceClassDefault)},
		{string(api.SliceAuthentication), string(authv1beta1.ResourceSliceConditionTypeAuthentication)},
		{string(api.SliceResources), string(authv1beta1.ResourceSliceConditionTypeResources)},
		{string(api.SliceAccepted), string(authv1beta1.ResourceSliceConditionAccepted)},
		{string(api.SliceDenied), string(authv1beta1.ResourceSliceConditionDenied)},

		{string(api.MappingAccepted), string(offloadingv1beta1.MappingAccepted)},
		{string(api.MappingFailing), string(offloadingv1beta1.MappingCreationLoopBackOff)},
		{string(api.MappingTerminating), string(offloadingv1beta1.MappingTerminating)},
		{string(api.SameName), string(offloadingv1beta1.EnforceSameNameMappingStrategyType)},
		{string(api.DefaultName), string(offloadingv1beta1.DefaultNameMappingStrategyType)},
		{string(api.SelectedName), string(offloadingv1beta1.SelectedNameMappingStrategyType)},
		{string(api.PodsLocal), string(offloadingv1beta1.LocalPodOffloadingStrategyType)},
		{string(api.PodsRemote), string(offloadingv1beta1.RemotePodOffloadingStrategyType)},
		{string(api.PodsLocalAndRemote), string(offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType)},
		{string(api.OffloadingReady), string(offloadingv1beta1.ReadyOffloadingPhaseType)},
		{string(api.OffloadingNoCluster), string(offloadingv1beta1.NoClusterSelectedOffloadingPhaseType)},
		{string(api.OffloadingInProgress), string(offloadingv1beta1.InProgressOffloadingPhaseType)},
		{string(api.OffloadingSomeFailed), string(offloadingv1beta1.SomeFailedOffloadingPhaseType)},
		{string(api.OffloadingAllFailed), string(offloadingv1beta1.AllFailedOffloadingPhaseType)},
		{string(api.OffloadingTerminating), string(offloadingv1beta1.TerminatingOffloadingPhaseType)},
		{string(api.OffloadingRequired), string(offloadingv1beta1.NamespaceOffloadingRequired)},
		{string(api.RemoteNamespaceReady), string(offloadingv1beta1.NamespaceReady)},
		{string(api.VirtualKubeletCondition), string(offloadingv1beta1.VirtualKubeletConditionType)},
		{string(api.NodeCondition), string(offloadingv1beta1.NodeConditionType)},
		{string(api.VirtualNodeNone), string(offloadingv1beta1.NoneConditionStatusType)},
		{string(api.VirtualNodeRunning), string(offloadingv1beta1.RunningConditionStatusType)},
		{string(api.VirtualNodeCreating), string(offloadingv1beta1.CreatingConditionStatusType)},
		{string(api.VirtualNodeDraining), string(offloadingv1beta1.DrainingConditionStatusType)},
		{string(api.VirtualNodeDeleting), string(offloadingv1beta1.DeletingConditionStatusType)},

		{api.NetworkCIDRsConfigured, networkingv1beta1.ConfigurationConditionNetworkCIDRsConfigured},
		{string(api.Connected), string(networkingv1beta1.Connected)}, {string(api.Connecting), string(networkingv1beta1.Connecting)},
		{string(api.ConnectionError), string(networkingv1beta1.ConnectionError)},
		{string(api.FirewallApplied), string(networkingv1beta1.FirewallConfigurationStatusConditionTypeApplied)},
		{string(api.FirewallError), string(networkingv1beta1.FirewallConfigurationStatusConditionTypeError)},
		{string(api.FamilyIPv4), string(firewall.TableFamilyIPv4)}, {string(api.ChainFilter), string(firewall.ChainTypeFilter)},
		{string(api.PolicyAccept), string(firewall.ChainPolicyAccept)}, {string(api.PolicyDrop), string(firewall.ChainPolicyDrop)},
		{string(api.HookPrerouting), string(firewall.ChainHookPrerouting)}, {string(api.HookForward), string(firewall.ChainHookForward)},
		{string(api.ActionAccept), string(firewall.ActionAccept)}, {string(api.ActionDrop), string(firewall.ActionDrop)},
		{string(api.OpEqual), string(firewall.MatchOperationEq)}, {string(api.OpNotEqual), string(firewall.MatchOperationNeq)},
		{string(api.PositionSource), string(firewall.MatchPositionSrc)},
		{string(api.PositionDestination), string(firewall.MatchPositionDst)},
		{string(api.DeviceIn), string(firewall.MatchDevPositionIn)}, {string(api.DeviceOut), string(firewall.MatchDevPositionOut)},
	} {
		if value.got != value.want {
			t.Errorf("%q is called %q in Liqo", value.got, value.want)
		}
	}
}

// constants returns the texts that a file of Liqo's names, of a package that would bring much to compile.
func constants(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(liqoFolder(t), name), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != len(spec.Names) {
			return true
		}
		for i, value := range spec.Values {
			if literal, is := value.(*ast.BasicLit); is && literal.Kind == token.STRING {
				if all[spec.Names[i].Name], err = strconv.Unquote(literal.Value); err != nil {
					t.Fatal(err)
				}
			}
		}
		return true
	})
	return all
}
