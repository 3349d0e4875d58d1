// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines/linestest"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

func TestHandle(t *testing.T) {
	cases := map[string]struct {
		reason string
		level  Level
		breaks func(*corev1.PodSpec)
		// refusal is part of the answer; empty if the pod is admitted.
		refusal string
	}{
		"Plain": {"An ordinary pod is admitted.", DefaultLevel, func(*corev1.PodSpec) {}, ""},
		"NodeName": {
			"A pod that names its node passes the scheduler by.", DefaultLevel, func(s *corev1.PodSpec) { s.NodeName = "broker" }, "spec.nodeName",
		},
		"HostNetwork": {"A host namespace is the node's.", DefaultLevel, func(s *corev1.PodSpec) { s.HostNetwork = true }, "host namespaces"},
		"HostPID":     {"So is this one.", DefaultLevel, func(s *corev1.PodSpec) { s.HostPID = true }, "host namespaces"},
		"HostIPC":     {"And this one.", DefaultLevel, func(s *corev1.PodSpec) { s.HostIPC = true }, "host namespaces"},
		"HostPath":    {"A path of the host is the node.", DefaultLevel, hostPath, "hostPath"},
		"Privileged": {"A privileged container is root on its node.", DefaultLevel, func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		}, "privileged"},
		"PrivilegedInit": {"So is one that runs first.", DefaultLevel, func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "first", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
		}, "privileged"},
		"Capability": {"So is one with the right capability.", DefaultLevel, func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
		}, "SYS_ADMIN"},
		"Allowed":       {"The operator may allow it.", "privileged", hostPath, ""},
		"NeverNodeName": {"But not to pass the scheduler by.", "privileged", func(s *corev1.PodSpec) { s.NodeName = "broker" }, "spec.nodeName"},
		"Restricted":    {"Or ask for more.", "restricted", func(*corev1.PodSpec) {}, "runAsNonRoot"},
		"SeveralTogether": {
			"All reasons are told at once.", DefaultLevel, func(s *corev1.PodSpec) { s.HostPID = true; hostPath(s) },
			"host namespaces (hostPID=true), hostPath",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := liqotest.Pod(liqotest.ShadowPod("web-consumer", "web", nil), "")
			pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "web"}}
			tc.breaks(&pod.Spec)
			for _, of := range lines.All() {
				for kind, object := range map[string]any{"Pod": pod, "ShadowPod": shadowOf(t, of, &pod.Spec)} {
					check(t, of, tc.reason, tc.level, kind, object, tc.refusal)
				}
			}
		})
	}
}

// shadowOf returns the ShadowPod of a line that asks for a pod.
func shadowOf(t *testing.T, of line.Line, pod *corev1.PodSpec) client.Object {
	t.Helper()
	shadow := of.Kinds().Wish
	kind, err := apiutil.GVKForObject(shadow, linestest.Scheme(t))
	if err != nil {
		t.Fatal(err)
	}
	shadow.GetObjectKind().SetGroupVersionKind(kind)
	shadow.SetNamespace("web-consumer")
	shadow.SetName("web")
	*of.WishOf(shadow).Pod = *pod
	return shadow
}

func hostPath(s *corev1.PodSpec) {
	s.Volumes = append(s.Volumes, corev1.Volume{
		Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
	})
}

// TestUnreadable has wishes for pods that Kubernetes cannot read, or takes minutes to read.
func TestUnreadable(t *testing.T) {
	handler, err := New(v09.Line{}, linestest.Scheme(t), DefaultLevel)
	if err != nil {
		t.Fatal(err)
	}
	wish := func(cpu string) runtime.RawExtension {
		return runtime.RawExtension{Raw: []byte(`{"apiVersion":"virtualkubelet.liqo.io/v1alpha1","kind":"ShadowPod","metadata":{"name":"web"},"spec":{"pod":{` +
			`"containers":[{"name":"main","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}}`)}
	}
	for _, tc := range []struct {
		reason, before, cpu string
		allowed             bool
	}{
		{reason: "Ordinary ones are admitted.", cpu: "100m", before: "200m", allowed: true},
		{reason: "It is no quantity.", cpu: "1e1.5", before: "1"},
		{reason: "It takes minutes.", cpu: "1e-2147483647", before: "1"},
		{reason: "What was there before can be replaced.", cpu: "1", before: "1e-2147483647", allowed: true},
	} {
		answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Update, Kind: metav1.GroupVersionKind{Kind: "ShadowPod"}, Object: wish(tc.cpu), OldObject: wish(tc.before),
		}})
		if answer.Allowed != tc.allowed || !tc.allowed &&
			!strings.Contains(answer.Result.Message, "spec.pod.containers[0].resources.requests[cpu]") {
			t.Errorf("%s\n%s cores: allowed %t, %v", tc.reason, tc.cpu, answer.Allowed, answer.Result)
		}
	}
}

// TestPriority has wishes for pods that would evict those of others.
func TestPriority(t *testing.T) {
	for _, of := range lines.All() {
		for reason, pod := range map[string]corev1.PodSpec{
			"A class is a priority.": {PriorityClassName: "system-node-critical"}, "So is a number.": {Priority: new(int32(5))},
		} {
			check(t, of, reason, DefaultLevel, "ShadowPod", shadowOf(t, of, &pod), "priority")
		}
	}
}

// TestAffinity has wishes for pods that would keep those of others away, or tell where they run.
func TestAffinity(t *testing.T) {
	own := corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{}}
	all, named := own, own
	all.NamespaceSelector, named.Namespaces = &metav1.LabelSelector{}, []string{"web-other"}
	near := func(required ...corev1.PodAffinityTerm) *corev1.Affinity {
		return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	away := func(required ...corev1.PodAffinityTerm) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	weighted := []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: all}}
	const others = "about pods in other namespaces: it must have neither namespaces nor namespaceSelector"
	for reason, tc := range map[string]struct {
		affinity *corev1.Affinity
		refusal  string
	}{
		"Pods of one's own may be kept apart.":     {away(own), ""},
		"Or together.":                             {near(own), ""},
		"A node is nobody's.":                      {&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}, ""},
		"Those of all are not one's own.":          {away(own, all), others},
		"Nor are those of another namespace.":      {away(named), others},
		"Whoever follows learns where they run.":   {near(own, all), others},
		"Also where one knows how they are named.": {near(named), others},
		"A wish is felt by others, too.": {&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: weighted,
		}}, others},
		"And tells as much.": {&corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: weighted,
		}}, others},
	} {
		pod := liqotest.Pod(liqotest.ShadowPod("web-consumer", "web", nil), "")
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "web"}}
		pod.Spec.Affinity = tc.affinity
		for _, of := range lines.All() {
			for kind, object := range map[string]any{"Pod": pod, "ShadowPod": shadowOf(t, of, &pod.Spec)} {
				check(t, of, reason, DefaultLevel, kind, object, tc.refusal)
			}
		}
	}
}

// TestOtherLine has a wish for a pod by a line of Liqo that does not run.
func TestOtherLine(t *testing.T) {
	answer := review(t, v09.Line{}, DefaultLevel, "ShadowPod", shadowOf(t, v1.Line{}, &corev1.PodSpec{}))
	if answer.Allowed || answer.Result.Code != http.StatusBadRequest {
		t.Errorf("a ShadowPod of Liqo 1.x is taken for one of 0.9: %+v", answer.Result)
	}
}

// TestLabels has wishes for pods with more labels than anybody needs.
func TestLabels(t *testing.T) {
	labelled := func(n int) *v09.ShadowPod {
		labels := map[string]string{}
		for i := range n {
			labels[fmt.Sprintf("label-%d", i)] = "value"
		}
		return liqotest.ShadowPod("web-consumer", "web", labels)
	}
	check(t, v09.Line{}, "Some are usual.", DefaultLevel, "ShadowPod", labelled(maxLabels), "")
	check(t, v09.Line{}, "Each takes memory.", DefaultLevel, "ShadowPod", labelled(maxLabels+1), "65 labels")
}

// TestChanged changes wishes of a time before the broker refused them.
func TestChanged(t *testing.T) {
	handler, err := New(v09.Line{}, linestest.Scheme(t), DefaultLevel)
	if err != nil {
		t.Fatal(err)
	}
	privileged := func(labels map[string]string, image string) runtime.RawExtension {
		shadow := liqotest.ShadowPod("web-consumer", "web", labels)
		shadow.Spec.Pod.HostPID, shadow.Spec.Pod.Containers = true, []corev1.Container{{Name: "main", Image: image}}
		raw, err := json.Marshal(shadow)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	for image, want := range map[string]bool{"web": true, "other": false} {
		answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Update, Kind: metav1.GroupVersionKind{Kind: "ShadowPod"},
			OldObject: privileged(nil, "web"), Object: privileged(map[string]string{"new": "label"}, image),
		}})
		if answer.Allowed != want {
			t.Errorf("a label and image %q: allowed %t, %v", image, answer.Allowed, answer.Result)
		}
	}
}

// TestJunk sends what is no pod.
func TestJunk(t *testing.T) {
	for kind, object := range map[string]any{"Pod": []int{1}, "ShadowPod": map[string]any{"spec": "junk"}, "Secret": corev1.Secret{}} {
		if answer := review(t, v09.Line{}, DefaultLevel, kind, object); answer.Allowed || answer.Result.Code != 400 {
			t.Errorf("%s: %+v, want a refusal with code 400", kind, answer.Result)
		}
	}
}

func TestParseLevel(t *testing.T) {
	if _, err := ParseLevel("lax"); err == nil {
		t.Error("an unknown level is taken")
	}
	if level, err := ParseLevel("baseline"); err != nil || level != DefaultLevel {
		t.Errorf("ParseLevel(baseline) = %q, %v", level, err)
	}
}

func check(t *testing.T, of line.Line, reason string, level Level, kind string, object any, refusal string) {
	t.Helper()
	answer := review(t, of, level, kind, object)
	if answer.Allowed != (refusal == "") || !answer.Allowed && !strings.Contains(answer.Result.Message, refusal) {
		t.Errorf("%s\n%s, with Liqo %s: allowed %t, %v, want %q", reason, kind, of.Name(), answer.Allowed, answer.Result, refusal)
	}
}

func review(t *testing.T, of line.Line, level Level, kind string, object any) admission.Response {
	t.Helper()
	handler, err := New(of, linestest.Scheme(t), level)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Kind: kind}, Object: runtime.RawExtension{Raw: raw},
	}})
}
