// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/install/diagnosis"
	"github.com/capacitorset/liqo-broker/pkg/program"
)

// stock is a cluster with nothing but Liqo.
func stock() client.Object {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "liqo-controller-manager"}}
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "manager", Image: "liqo/controller-manager:v0.9.4", Args: []string{"--kubelet-image=liqo/virtual-kubelet:v0.9.4"}},
	}
	d.Status.ReadyReplicas, d.Status.UpdatedReplicas = 1, 1
	return d
}

// TestDiagnose looks at a cluster that is nothing yet, and at one whose Liqo does not run: the exit code says so, for people and for
// programs, with an archive and without.
func TestDiagnose(t *testing.T) {
	if out, _, err := newCLI(t, stock()).run(t, "diagnose"); err != nil || !strings.Contains(out, "* This cluster is neither a broker") {
		t.Errorf("%v:\n%s", err, out)
	}
	down, _ := stock().(*appsv1.Deployment)
	down.Status.ReadyReplicas = 0
	c := newCLI(t, down)
	out, _, err := c.run(t, "diagnose")
	if !errors.Is(err, errUnhealthy) || program.ExitCode(err) != exitUnhealthy || !strings.Contains(out, "neither a broker nor a consumer") ||
		!strings.Contains(out, "Kubernetes v1.34.0") {
		t.Errorf("%v:\n%s", err, out)
	}
	var d diagnosis.Diagnosis
	if out, _, err = c.run(t, "diagnose -o json"); json.Unmarshal([]byte(out), &d) != nil || d.Healthy || d.Liqo != "v0.9.4" ||
		len(d.Checks) < 5 || program.ExitCode(err) != exitUnhealthy {
		t.Errorf("%v:\n%s", err, out)
	}
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	if _, errOut, err := c.run(t, "diagnose --bundle "+file); program.ExitCode(err) != exitUnhealthy ||
		!strings.Contains(errOut, "Look at it before you send it") {
		t.Errorf("%v: %s", err, errOut)
	}
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, _, err := c.run(t, "diagnose --bundle "+file); program.ExitCode(err) != program.ExitFailure || !errors.Is(err, os.ErrExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// TestInstallationFaults makes each command that installs meet a cluster that it cannot use.
func TestInstallationFaults(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, fault := range map[string]struct {
		err  error
		says string
	}{
		"NoRights": {
			apierrors.NewForbidden(resource, "x", errors.New("no role")),
			"you lack a right on this cluster: requirement: you may not read Liqo's installation",
		},
		"Expired": {apierrors.NewUnauthorized("no token"), "this cluster does not accept your credentials: "},
		"Unreachable": {
			&url.Error{Op: "Get", URL: "https://example", Err: errors.New("connection refused")}, "this cluster cannot be reached: Get",
		},
		"CtrlC":  {context.Canceled, "interrupted"},
		"NoLiqo": {apierrors.NewNotFound(resource, "x"), "requirement: this cluster has Liqo's kinds, but no Deployment"},
	} {
		for _, line := range []string{
			"install", "upgrade", "uninstall", "prepare", "unprepare", "install --dry-run", "unprepare --broker milan",
		} {
			c := &cli{client: interceptor.NewClient(newFake(t, stock()), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return fault.err
				},
			})}
			out, _, err := c.run(t, line)
			if err == nil || !strings.HasPrefix(err.Error(), fault.says) || out != "" || program.ExitCode(err) != program.ExitFailure ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %s: %q, %v", name, line, out, err)
			}
		}
	}
}
