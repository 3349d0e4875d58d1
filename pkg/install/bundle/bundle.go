// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundle writes an archive for a bug report: what a cluster has of the broker and of Liqo, with events and the ends of logs. No
// data of a Secret is read for it, and what looks like a secret elsewhere is masked.
//
// It does not know what is wrong: that is package diagnosis.
package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/install/diagnosis"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

const (
	// MaxLines is how many lines of a log are kept, and maxLog how many bytes of it.
	MaxLines = 5000
	maxLog   = 1 << 20
	// maxFile bounds one file, and maxBytes all files of an archive, before they are compressed.
	maxFile  = 8 << 20
	maxBytes = 64 << 20
	// maxPods is of how many pods logs are kept.
	maxPods = 60
)

// Logs reads the end of the log of a container, at most so many bytes; of its run before the present one if previous is true.
type Logs func(ctx context.Context, pod client.ObjectKey, container string, previous bool, most int64) (io.ReadCloser, error)

// Config is what an archive is made of.
type Config struct {
	Client    client.Client
	Now       time.Time
	Diagnosis *diagnosis.Diagnosis
	Logs      Logs
}

// Write writes an archive into a file, which must not exist: only its owner may read it. If that fails, there is no file.
func Write(ctx context.Context, name string, cfg Config) (err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(name)
		}
	}()
	return writeArchive(ctx, file, cfg)
}

// archive is one that is being written.
type archive struct {
	tar  *tar.Writer
	now  time.Time
	left []string // What was left out.
	size int
	// api reads the cluster.
	api  client.Client
	logs Logs
}

func writeArchive(ctx context.Context, w io.Writer, cfg Config) error {
	zipped := gzip.NewWriter(w)
	a := &archive{tar: tar.NewWriter(zipped), now: cfg.Now, api: cfg.Client, logs: cfg.Logs}
	a.left = append(a.left,
		"Secrets: all of them; objects still name those that they refer to",
		"values of environment variables, and of flags, that look like secrets", "managed fields, and what kubectl notes of what was applied",
		"in logs and texts: tokens, keys, certificates, passwords, and user names in URLs")
	text, err := json.MarshalIndent(cfg.Diagnosis, "", "    ")
	if err != nil {
		return fmt.Errorf("write the diagnosis: %w", err)
	}
	if err := a.addFile("diagnosis.json", text); err != nil {
		return err
	}
	namespaces, err := a.namespaces(ctx)
	if err != nil {
		a.leave("tenant namespaces", err)
	}
	if err := a.objects(ctx, namespaces); err != nil {
		return err
	}
	if err := a.allLogs(ctx, namespaces); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	manifest := "What was left out:\n* " + strings.Join(a.left, "\n* ") + "\n"
	if err := a.put("MANIFEST.txt", []byte(manifest)); err != nil {
		return err
	}
	if err := errors.Join(a.tar.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// leave notes that something is missing.
func (a *archive) leave(what string, err error) {
	a.left = append(a.left, redact(fmt.Sprintf("%s: %v", what, err)))
}

// addFile puts a text into the archive, without what looks like a secret.
func (a *archive) addFile(name string, text []byte) error {
	return a.keep(name, []byte(redact(string(text))))
}

// keep puts a text into the archive as it is, or only notes it, if there is no room for it.
func (a *archive) keep(name string, text []byte) error {
	if len(text) > maxFile || a.size+len(text) > maxBytes {
		a.leave(name, fmt.Errorf("it has %d bytes", len(text)))
		return nil
	}
	a.size += len(text)
	return a.put(name, text)
}

func (a *archive) put(name string, text []byte) error {
	header := &tar.Header{Name: "liqo-broker/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now}
	if err := a.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if _, err := a.tar.Write(text); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return nil
}

// ours are the namespaces of Liqo and of the broker, and with Liqo 1.x of the transit and the agent.
func ours() []string {
	return []string{liqo.DefaultNamespace, install.BrokerNamespace, install.TransitName, install.AgentName}
}

// namespaces returns ours, as far as they are there, and those of the peers.
func (a *archive) namespaces(ctx context.Context) ([]string, error) {
	all := ours()
	for _, line := range []client.ListOption{
		client.MatchingLabelsSelector{Selector: liqo.TenantNamespaceSelector()}, client.HasLabels{liqo.LabelTenantNamespace},
	} {
		var tenants corev1.NamespaceList
		if err := a.api.List(ctx, &tenants, line); err != nil {
			return all, err
		}
		for i := range tenants.Items {
			all = append(all, tenants.Items[i].Name)
		}
	}
	return all, nil
}

// everywhere are the kinds of which all objects are kept, and inNamespaces those of the namespaces of Liqo, the broker and the peers. A
// kind with data that nobody knows, such as ConfigMaps, is in neither.
func everywhere() []schema.GroupVersionKind {
	own := func(kind string) schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind(kind) }
	of := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind}
	}
	return []schema.GroupVersionKind{
		own("Provider"), own("Consumer"), own("PlacementPolicy"), own("PlacementDecision"), own("ProviderQuery"), own("ProviderHistory"),
		of("discovery.liqo.io", "ForeignCluster"), of("discovery.liqo.io", "ResourceRequest"),
		of("sharing.liqo.io", "ResourceOffer"), of("net.liqo.io", "NetworkConfig"), of("net.liqo.io", "TunnelEndpoint"),
		of("net.liqo.io", "NatMapping"), of("virtualkubelet.liqo.io", "VirtualNode"), of("virtualkubelet.liqo.io", "NamespaceMap"),
		of("offloading.liqo.io", "NamespaceOffloading"),
		{Group: api.CoreGroup, Version: api.Beta, Kind: "ForeignCluster"},
		{Group: api.AuthenticationGroup, Version: api.Beta, Kind: "ResourceSlice"},
		{Group: api.AuthenticationGroup, Version: api.Beta, Kind: "Identity"},
		{Group: api.NetworkingGroup, Version: api.Beta, Kind: "Configuration"},
		{Group: api.NetworkingGroup, Version: api.Beta, Kind: "Connection"},
		{Group: api.NetworkingGroup, Version: api.Beta, Kind: "FirewallConfiguration"},
		{Group: api.OffloadingGroup, Version: api.Beta, Kind: "VirtualNode"},
		{Group: api.OffloadingGroup, Version: api.Beta, Kind: "NamespaceMap"},
		{Group: api.OffloadingGroup, Version: api.Beta, Kind: "NamespaceOffloading"},
		{Group: api.IPAMGroup, Version: api.Alpha, Kind: "Network"}, {Group: api.IPAMGroup, Version: api.Alpha, Kind: "IP"},
		corev1.SchemeGroupVersion.WithKind("Node"),
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	}
}

func inNamespaces() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("Event"),
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	}
}

// objects adds objects, a file for each kind and namespace.
func (a *archive) objects(ctx context.Context, namespaces []string) error {
	for _, kind := range everywhere() {
		if err := a.list(ctx, "objects/"+file(kind), kind); err != nil {
			return err
		}
	}
	for _, namespace := range namespaces {
		for _, kind := range inNamespaces() {
			if err := a.list(ctx, "namespaces/"+namespace+"/"+file(kind), kind, client.InNamespace(namespace)); err != nil {
				return err
			}
		}
	}
	return nil
}

func file(kind schema.GroupVersionKind) string { return strings.ToLower(kind.Kind) + "s.yaml" }

func (a *archive) list(ctx context.Context, name string, kind schema.GroupVersionKind, options ...client.ListOption) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := a.api.List(ctx, list, options...); err != nil {
		if !meta.IsNoMatchError(err) {
			a.leave(name, err)
		}
		return nil // What cannot be read is left out, and noted.
	}
	if len(list.Items) == 0 {
		return nil
	}
	var all bytes.Buffer
	for i := range list.Items {
		text, err := yaml.Marshal(clean(list.Items[i].Object))
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		all.WriteString("---\n")
		all.Write(text)
	}
	return a.keep(name, all.Bytes())
}

// allLogs adds the ends of the logs of the programs of Liqo and of the broker.
func (a *archive) allLogs(ctx context.Context, namespaces []string) error {
	kept := 0
	for _, namespace := range namespaces {
		var pods corev1.PodList
		if err := a.api.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			a.leave("logs of namespace "+namespace, err)
			continue
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !slices.Contains(ours(), namespace) && !ofLiqo(pod) {
				continue
			}
			if kept++; kept > maxPods {
				a.leave("logs of pod "+namespace+"/"+pod.Name, fmt.Errorf("only %d pods have theirs here", maxPods))
				continue
			}
			if err := a.podLogs(ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofLiqo reports whether a pod in the tenant namespace of a peer is a virtual kubelet or a gateway.
func ofLiqo(pod *corev1.Pod) bool {
	return v09.VirtualKubeletSelector().Matches(labelSet(pod.Labels)) || v1.OfLiqo(pod)
}

func (a *archive) podLogs(ctx context.Context, pod *corev1.Pod) error {
	restarted := map[string]bool{}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		restarted[s.Name] = s.RestartCount > 0
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, previous := range []bool{false, true} {
			if previous && !restarted[c.Name] {
				continue
			}
			name := fmt.Sprintf("namespaces/%s/logs/%s.%s.log", pod.Namespace, pod.Name, c.Name)
			if previous {
				name += ".previous"
			}
			text, err := a.log(ctx, client.ObjectKeyFromObject(pod), c.Name, previous)
			if err != nil {
				a.leave(name, err)
				continue
			}
			if err := a.addFile(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *archive) log(ctx context.Context, pod client.ObjectKey, container string, previous bool) ([]byte, error) {
	stream, err := a.logs(ctx, pod, container, previous, maxLog)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return io.ReadAll(io.LimitReader(stream, maxLog))
}
