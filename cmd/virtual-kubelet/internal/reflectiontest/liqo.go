// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reflectiontest

import (
	liqofake "github.com/liqotech/liqo/pkg/client/clientset/versioned/fake"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

// NewLiqo returns a fake client of Liqo's kinds with some objects. It has to be asked for a list: Liqo's generated fake does not know that
// a watch may begin with one, which client-go asks for first, and would never say that the list is complete.
func NewLiqo(objects ...runtime.Object) *liqofake.Clientset {
	clients := liqofake.NewSimpleClientset(objects...)
	clients.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		if w, is := action.(clienttesting.WatchActionImpl); is && w.ListOptions.SendInitialEvents != nil {
			return true, nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil)
		}
		return false, nil, nil
	})
	return clients
}
