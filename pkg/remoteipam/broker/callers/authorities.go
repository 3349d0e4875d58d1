// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// AuthoritiesNamespace and AuthoritiesName name the ConfigMap in which kube-apiserver publishes
// the authorities of its clients' certificates (k8s.io/apiserver, the ConfigMap that extension
// servers read).
const (
	AuthoritiesNamespace = "kube-system"
	AuthoritiesName      = "extension-apiserver-authentication"
	authoritiesKey       = "client-ca-file"
)

// Authorities are those that sign the certificates of this cluster's clients. They are
// safe for concurrent use.
type Authorities struct {
	client kubernetes.Interface
	log    logr.Logger
	pool   atomic.Pointer[x509.CertPool]
}

// Runner runs what it is given until the program ends, as a manager does.
type Runner interface {
	Add(runnable manager.Runnable) error
}

// NewAuthorities returns the authorities as they are at this moment. As long as the runner
// runs they follow the cluster's.
func NewAuthorities(ctx context.Context, client kubernetes.Interface, runner Runner, log logr.Logger) (*Authorities, error) {
	a := &Authorities{client: client, log: log}
	configMap, err := client.CoreV1().ConfigMaps(AuthoritiesNamespace).Get(ctx, AuthoritiesName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the CA of the cluster's clients from ConfigMap %s/%s: %w", AuthoritiesNamespace, AuthoritiesName, err)
	}
	if err := a.set(configMap); err != nil {
		return nil, err
	}
	if err := runner.Add(manager.RunnableFunc(a.follow)); err != nil {
		return nil, fmt.Errorf("watch the CA of the cluster's clients: %w", err)
	}
	return a, nil
}

// Pool returns the authorities of this moment. The caller must not change it.
func (a *Authorities) Pool() *x509.CertPool { return a.pool.Load() }

// follow follows the authorities until ctx ends: new ones are trusted, and old ones are not
// any more. What cannot be understood is logged, and changes nothing.
func (a *Authorities) follow(ctx context.Context) error {
	informer := corev1informers.NewFilteredConfigMapInformer(a.client, AuthoritiesNamespace, 0, toolscache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, AuthoritiesName).String()
		})
	changed := func(object any) {
		configMap, ok := object.(*corev1.ConfigMap)
		if !ok || configMap.Name != AuthoritiesName {
			return
		}
		if err := a.set(configMap); err != nil {
			a.log.Error(err, "Cannot read the client CA of this cluster; the last one is used")
		}
	}
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, updated any) { changed(updated) },
	})
	if err != nil {
		return fmt.Errorf("watch the CA of the cluster's clients: %w", err)
	}
	informer.Run(ctx.Done())
	return nil
}

func (a *Authorities) set(configMap *corev1.ConfigMap) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(configMap.Data[authoritiesKey])) {
		return errors.New("ConfigMap " + AuthoritiesNamespace + "/" + AuthoritiesName + " has no certificate under " + authoritiesKey +
			": this cluster does not authenticate its clients by certificates")
	}
	a.pool.Store(pool)
	return nil
}
