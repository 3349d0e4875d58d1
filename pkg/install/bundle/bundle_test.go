// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/install/diagnosis"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// canary is in all secrets of the tests, at a place where none of them may leave it.
const canary = "CaNaRy7351"

var (
	pemKey = "-----BEGIN EC PRIVATE KEY-----\nMHcC" + canary + "\n-----END EC PRIVATE KEY-----\n"
	jwt    = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4" + canary + "In0.c2lnbmF0dXJl" + canary
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s), v09.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// leaky has a secret at each place that is known to hold some.
func leaky() []client.Object {
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	tenant := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-milan", Labels: map[string]string{"discovery.liqo.io/tenant-namespace": "true"}},
	}
	secret := &corev1.Secret{ObjectMeta: in("liqo", "auth-token"), Data: map[string][]byte{"token": []byte(canary)}}
	config := &corev1.ConfigMap{ObjectMeta: in("liqo", "config"), Data: map[string]string{"any": canary}}
	container := corev1.Container{
		Name: "broker", Image: "broker:v1",
		Args: []string{
			"--with-catalog", "--api-token=" + canary, "--password", canary, "--dsn=postgres://user:" + canary + "@db/x",
			"--header=Authorization: Bearer " + canary,
		},
		Command: []string{"/bin/broker", "--client-key=" + canary},
		Env: []corev1.EnvVar{
			{Name: "DB_PASSWORD", Value: canary}, {Name: "AWS_SECRET_ACCESS_KEY", Value: canary}, {Name: "GITHUB_TOKEN", Value: canary},
			{Name: "X", Value: jwt},
			{Name: "KEY", Value: pemKey}, {Name: "GOMEMLIMIT", Value: "200MiB"},
		},
	}
	d := &appsv1.Deployment{ObjectMeta: in("liqo-broker", "liqo-broker")}
	d.Annotations = map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": canary, "note": "password=" + canary, "example.com/token": canary,
	}
	d.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: canary, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:` + canary + `":{}}`)},
	}}
	d.Spec.Template.Spec.Containers = []corev1.Container{container}
	pod := &corev1.Pod{ObjectMeta: in("liqo-broker", "liqo-broker-1"), Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "broker", RestartCount: 1}}
	event := &corev1.Event{ObjectMeta: in("liqo-tenant-milan", "e"), Message: "cannot log in with " + jwt + " and token: " + canary}
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	provider.Annotations = map[string]string{"url": "https://me:" + canary + "@example.com/"}
	return []client.Object{tenant, secret, config, d, pod, event, provider}
}

// logs is what a program says that tells too much.
var logs = strings.Join([]string{
	"starting", "token=" + canary, `{"level":"info","password":"` + canary + `"}`, `"{\"secret\":\"` + canary + `\"}"`,
	"Authorization: Bearer " + canary, "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+canary)),
	jwt, pemKey, "key: " + base64.StdEncoding.EncodeToString([]byte(pemKey)), "https://u:" + canary + "@host/", "served a request",
	"-----BEGIN PRIVATE KEY-----\nMII" + canary,
}, "\n")

func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(header.Name, "liqo-broker/")] = string(content)
	}
}

func configure(c client.Client, log string) Config {
	return Config{Client: c, Now: time.Unix(1_800_000_000, 0),
		Diagnosis: &diagnosis.Diagnosis{Checks: []diagnosis.Check{{What: "token: " + canary}}},
		Logs: func(_ context.Context, pod client.ObjectKey, _ string, previous bool, most int64) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(fmt.Sprintf("%s %t\n%s", pod, previous, log))), nil
		}}
}

// TestNoSecretLeaves puts secrets at all places, and searches the archive for them.
func TestNoSecretLeaves(t *testing.T) {
	read := []string{}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(leaky()...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if kind, err := c.GroupVersionKindFor(list); err == nil {
				read = append(read, kind.Kind)
			}
			return c.List(ctx, list, options...)
		},
	})
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := Write(t.Context(), name, configure(c, logs)); err != nil {
		t.Fatal(err)
	}
	files := unpack(t, name)
	for file, content := range files {
		for n, line := range strings.Split(content, "\n") {
			if strings.Contains(line, canary) || strings.Contains(line, base64.StdEncoding.EncodeToString([]byte("u:"+canary))) {
				t.Errorf("%s:%d has a secret: %s", file, n+1, line)
			}
		}
		if strings.Contains(content, "auth-token") {
			t.Errorf("%s names a Secret", file)
		}
	}
	for _, kind := range read {
		if strings.HasPrefix(kind, "Secret") || strings.HasPrefix(kind, "ConfigMap") {
			t.Errorf("a %s was read", kind)
		}
	}
	for file, want := range map[string]string{
		"diagnosis.json": "checks", "objects/providers.yaml": "milan", "namespaces/liqo-broker/deployments.yaml": "200MiB",
		"namespaces/liqo-tenant-milan/events.yaml":                      "cannot log in",
		"namespaces/liqo-broker/logs/liqo-broker-1.broker.log":          "served a request",
		"namespaces/liqo-broker/logs/liqo-broker-1.broker.log.previous": "true", "MANIFEST.txt": "Secrets: all of them",
	} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s has no %q:\n%s", file, want, files[file])
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive has the mode %v, %v", info.Mode(), err)
	}
}

// TestLiqo1 makes an archive of a cluster with Liqo 1.x: it has the objects of that, and logs of what runs in tenant namespaces for it.
func TestLiqo1(t *testing.T) {
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s), api.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	const tenant = "liqo-tenant-milan"
	made := func(namespace, name string, labels map[string]string) client.Object {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
		pod.Spec.Containers = []corev1.Container{{Name: "it"}}
		return pod
	}
	slice := &api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "milan"}}
	slice.Spec.CSR = []byte("-----BEGIN CERTIFICATE REQUEST-----\n" + canary)
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant, Labels: map[string]string{"liqo.io/tenant-namespace": "true"}}}, slice,
		&api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}},
		made(tenant, "gw", map[string]string{"networking.liqo.io/component": "gateway"}),
		made(tenant, "vk", map[string]string{"offloading.liqo.io/component": "virtual-kubelet"}), made(tenant, "other", nil),
		made("liqo-broker-transit", "transit", nil), made("liqo-broker-agent", "agent", nil), made("shop", "web", nil),
	).Build()
	if err := Write(t.Context(), name, configure(c, "served")); err != nil {
		t.Fatal(err)
	}
	files := unpack(t, name)
	for file, has := range map[string]bool{
		"objects/foreignclusters.yaml": true, "objects/resourceslices.yaml": true, "namespaces/" + tenant + "/pods.yaml": true,
		"namespaces/" + tenant + "/logs/gw.it.log": true, "namespaces/" + tenant + "/logs/vk.it.log": true,
		"namespaces/" + tenant + "/logs/other.it.log": false, "namespaces/liqo-broker-transit/logs/transit.it.log": true,
		"namespaces/liqo-broker-agent/logs/agent.it.log": true, "namespaces/shop/pods.yaml": false,
	} {
		if content, is := files[file]; is != has || strings.Contains(content, base64.StdEncoding.EncodeToString(slice.Spec.CSR)) {
			t.Errorf("%s is there: %t, want %t\n%s", file, is, has, content)
		}
	}
}

// TestExisting keeps a file that is there.
func TestExisting(t *testing.T) {
	name := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Write(t.Context(), name, configure(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), ""))
	if content, _ := os.ReadFile(name); !errors.Is(err, os.ErrExist) || string(content) != "mine" {
		t.Errorf("%v, and the file has %q", err, content)
	}
}

// TestBounded has a log that is too long, one that cannot be read, and a kind that may not be: the archive is bounded, and says so.
func TestBounded(t *testing.T) {
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(leaky()...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if kind, err := c.GroupVersionKindFor(list); err == nil && kind.Kind == "NodeList" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no role"))
			}
			return c.List(ctx, list, options...)
		},
	})
	cfg := configure(c, "")
	cfg.Logs = func(_ context.Context, _ client.ObjectKey, _ string, previous bool, _ int64) (io.ReadCloser, error) {
		if previous {
			return nil, errors.New("no such log")
		}
		return io.NopCloser(strings.NewReader(strings.Repeat("a long line\n", 2*maxLog))), nil
	}
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := Write(t.Context(), name, cfg); err != nil {
		t.Fatal(err)
	}
	files := unpack(t, name)
	if n := len(files["namespaces/liqo-broker/logs/liqo-broker-1.broker.log"]); n != maxLog {
		t.Errorf("the log has %d bytes, want %d", n, maxLog)
	}
	for _, want := range []string{"objects/nodes.yaml: nodes is forbidden", "liqo-broker-1.broker.log.previous: no such log"} {
		if !strings.Contains(files["MANIFEST.txt"], want) {
			t.Errorf("the manifest does not say %q:\n%s", want, files["MANIFEST.txt"])
		}
	}
}

// TestInterrupted presses Ctrl-C in the middle: no half archive is left.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(leaky()...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			cancel()
			return ctx.Err()
		},
	})
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := Write(ctx, name, configure(c, "")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
}
