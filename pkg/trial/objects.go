// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/probe"
)

const (
	// serverName is the Deployment and the Service of the pods that answer, and askerName the pod that asks.
	serverName, askerName = "server", "asker"
	// labelPart says which part of the trial a pod is.
	labelPart = "app.kubernetes.io/component"
	// nobody is the user that all pods of the trial are.
	nobody = 65532
)

func serverLabels() map[string]string { return map[string]string{labelPart: serverName} }

// addressOf returns where a host of the trial answers.
func addressOf(host string) string { return net.JoinHostPort(host, strconv.Itoa(probe.Port)) }

func (c *Config) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: serverName},
		Spec: corev1.ServiceSpec{
			Selector: serverLabels(),
			Ports:    []corev1.ServicePort{{Name: "http", Port: probe.Port, TargetPort: intstr.FromInt32(probe.Port)}},
		},
	}
}

// deployment returns the pods that run at the broker: one for each of its nodes here, as far as there are as many.
func (c *Config) deployment() *appsv1.Deployment {
	pods := int32(c.Pods) //nolint:gosec // At most MaxPods.
	spec := c.pod("probe", "serve")
	spec.Affinity = onNodes(corev1.NodeSelectorRequirement{
		Key: liqo.LabelRemoteClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{string(c.Broker.ID)},
	})
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: serverLabels()},
	}}
	spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: probe.Port}}
	spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(probe.Port)}},
		PeriodSeconds: 1, TimeoutSeconds: 5,
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: serverName},
		Spec: appsv1.DeploymentSpec{
			Replicas: &pods, Selector: &metav1.LabelSelector{MatchLabels: serverLabels()},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: serverLabels()}, Spec: spec},
		},
	}
}

// asker returns the pod that asks targets. It runs on a node of this cluster.
func (c *Config) asker(targets []probe.Target) *corev1.Pod {
	args := []string{"probe", "ask", "--times=" + strconv.Itoa(c.Asks), "--within=" + (c.Timeout / 3).String()}
	for _, target := range targets {
		args = append(args, target.String())
	}
	spec := c.pod(args...)
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.Affinity = onNodes(corev1.NodeSelectorRequirement{
		Key: liqo.LabelNodeType, Operator: corev1.NodeSelectorOpNotIn, Values: []string{liqo.NodeTypeVirtual},
	})
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: askerName, Labels: map[string]string{labelPart: askerName}}, Spec: spec,
	}
}

// pod returns what all pods of the trial are: as little as the strictest of Kubernetes' standards lets them be.
func (c *Config) pod(args ...string) corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		EnableServiceLinks:           new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{
			Name: "probe", Image: c.Image, Args: args,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			},
		}},
	}
}

func onNodes(of corev1.NodeSelectorRequirement) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{of}}},
		},
	}}
}
