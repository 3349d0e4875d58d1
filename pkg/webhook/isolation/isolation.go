// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolation refuses pods of consumers that pass the scheduler by, could do more on a
// node than Kubernetes' Pod Security Standards allow at the level that the operator chose, or
// keep pods of others away.
//
// It is a validating admission webhook for the pods of twin namespaces, and for the
// ShadowPods by which consumers ask for them, so that the consumer is told at once. It
// changes nothing, and does not know where pods are to go.
package isolation

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Path is where the webhook is served.
const Path = "/isolate-pods"

// maxLabels bounds the labels of a pod, all of which a broker keeps in memory.
const maxLabels = 64

// Level is a level of the Pod Security Standards.
type Level = podsecurity.Level

// DefaultLevel is the level that is admitted unless the operator says otherwise.
const DefaultLevel = podsecurity.LevelBaseline

// ParseLevel returns the level with a name: privileged, baseline or restricted.
func ParseLevel(name string) (Level, error) {
	level, err := podsecurity.ParseLevel(name)
	if err != nil {
		return "", fmt.Errorf("unknown Pod Security level %q: %w", name, err)
	}
	return level, nil
}

// Handler answers the API server when a pod of a consumer is asked for or made. It may be
// used concurrently.
type Handler struct {
	line      line.Told
	kind      client.Object // An empty ShadowPod, which stays so.
	decoder   admission.Decoder
	evaluator policy.Evaluator
	level     Level
}

var _ admission.Handler = (*Handler)(nil)

// New returns a Handler that admits pods up to a level, with a line of Liqo, whose kinds are in the scheme.
func New(of line.Line, scheme *runtime.Scheme, level Level) (*Handler, error) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, fmt.Errorf("set up the checks of the Pod Security Standards: %w", err)
	}
	return &Handler{line: of, kind: of.Kinds().Wish, decoder: admission.NewDecoder(scheme), evaluator: evaluator, level: level}, nil
}

// Handle refuses a pod, or a wish for one, with all reasons at once.
func (h *Handler) Handle(_ context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return admission.Allowed("")
	}
	var wrong []string
	switch req.Kind.Kind {
	case "Pod":
		var pod corev1.Pod
		if err := h.decoder.Decode(req, &pod); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		wrong = h.insecure(&pod.ObjectMeta, &pod.Spec)
	case "ShadowPod":
		shadow, err := lenient.Decode(h.decoder, req.Object, h.kind)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		// What is asked for already stays writable, also if the level is a stricter one now.
		if req.Operation == admissionv1.Update {
			if before, err := lenient.Decode(h.decoder, req.OldObject, h.kind); err == nil &&
				equality.Semantic.DeepEqual(h.line.WishOf(before).Pod, h.line.WishOf(shadow).Pod) {
				break
			}
		}
		wrong = h.wish(shadow)
	default:
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("%s is neither a Pod nor a ShadowPod", req.Kind.Kind))
	}
	if len(wrong) > 0 {
		return admission.Denied("this cluster does not take the pod: " + strings.Join(wrong, "; "))
	}
	return admission.Allowed("")
}

// wish returns what is wrong with a wish for a pod. The virtual kubelets of consumers
// forward no priority: one would evict the pods of other consumers
// (RemotePodSpec in liqo/pkg/virtualKubelet/forge/pods.go, of v0.9.4 and of v1.2.0).
func (h *Handler) wish(shadow client.Object) []string {
	spec := h.line.WishOf(shadow).Pod
	wrong := h.insecure(&metav1.ObjectMeta{Labels: shadow.GetLabels(), Annotations: shadow.GetAnnotations()}, spec)
	if n := len(shadow.GetLabels()); n > maxLabels {
		wrong = append(wrong, fmt.Sprintf("it has %d labels, more than %d", n, maxLabels))
	}
	if spec.PriorityClassName != "" || spec.Priority != nil {
		wrong = append(wrong, "it has a priority")
	}
	return wrong
}

// insecure returns what no pod of a consumer may have.
func (h *Handler) insecure(meta *metav1.ObjectMeta, spec *corev1.PodSpec) (wrong []string) {
	if spec.NodeName != "" {
		wrong = append(wrong, "spec.nodeName bypasses the scheduler")
	}
	if isAboutOthers(spec.Affinity) {
		wrong = append(wrong, "its affinity is about pods in other namespaces: it must have neither namespaces nor namespaceSelector")
	}
	results := h.evaluator.EvaluatePod(podsecurity.LevelVersion{Level: h.level, Version: podsecurity.LatestVersion()}, meta, spec)
	if result := policy.AggregateCheckResults(results); !result.Allowed {
		wrong = append(wrong, fmt.Sprintf("Pod Security level %q: %s", h.level, result.ForbiddenDetail()))
	}
	return wrong
}

// isAboutOthers reports whether an affinity is about pods in other namespaces than that of its own pod: one by which it keeps away from
// them keeps them away from where it runs, whosever they are, and one by which it follows them tells where they run.
func isAboutOthers(affinity *corev1.Affinity) bool {
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if affinity != nil && affinity.PodAffinity != nil {
		terms = append(terms, affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if affinity != nil && affinity.PodAntiAffinity != nil {
		terms = append(terms, affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for i := range weighted {
		terms = append(terms, weighted[i].PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}
