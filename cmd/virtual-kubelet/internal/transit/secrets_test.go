// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/events"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

// tokensOf is the Secret in which Liqo's virtual kubelet of a cluster keeps the tokens of pod web in another one, as its
// ServiceAccount reflector writes it.
func tokensOf(from, to, node, namespace, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web-token", UID: types.UID("of " + from), ResourceVersion: "1",
			Labels: map[string]string{
				forge.LiqoOriginClusterIDKey: from, forge.LiqoDestinationClusterIDKey: to, forge.LiqoOriginClusterNodeName: node,
				forge.LiqoSASecretForPodNameKey: "web", forge.LiqoSASecretForServiceAccountKey: "default",
			},
			Annotations: map[string]string{
				forge.LiqoSASecretForPodUIDKey: "uid at " + from, forge.LiqoSASecretExpirationKey: time.Now().Add(time.Hour).Format(time.RFC3339),
			},
		},
		Data: map[string][]byte{"kube-api-access-x": []byte(token)},
		Type: corev1.SecretTypeOpaque,
	}
}

// original is what a consumer keeps at the broker.
func original(token string) *corev1.Secret {
	return tokensOf("consumer", "broker", "liqo-broker", "twin", token)
}

// leftBehind is the copy, of token 1, that an earlier version left at the provider.
func leftBehind() *corev1.Secret {
	return tokensOf("broker", "provider", "liqo-broker", "twin-broker", "1")
}

// edited returns a Secret with a change.
func edited(secret *corev1.Secret, edit func(*corev1.Secret)) *corev1.Secret {
	edit(secret)
	return secret
}

// tokenClusters are a broker and a provider, between which Secrets and tokens of a namespace are reflected by the queues and
// informers of Liqo's own reflectors.
type tokenClusters struct {
	t                *testing.T
	broker, provider *fake.Clientset
	// podsFail is whether the broker does not answer who asks for a pod.
	podsFail atomic.Bool
	// How many tokens the broker issued, how often it warned of something, and how often it took labels from a Secret.
	issued, warned, relabelled atomic.Int64
}

// newTokenClusters returns clusters with objects that are not reflected yet.
func newTokenClusters(t *testing.T, objects ...runtime.Object) *tokenClusters {
	t.Helper()
	reflectiontest.BeBroker()
	var local, remote []runtime.Object
	for _, object := range objects {
		if object.(metav1.Object).GetNamespace() == "twin" {
			local = append(local, object)
		} else {
			remote = append(remote, object)
		}
	}
	c := &tokenClusters{t: t, broker: fake.NewSimpleClientset(local...), provider: fake.NewSimpleClientset(remote...)}
	secretsThatApply(c.provider, &atomic.Bool{})
	c.provider.PrependReactor("patch", "secrets", c.conflict)
	c.broker.PrependReactor("create", "serviceaccounts", func(k8stesting.Action) (bool, runtime.Object, error) {
		c.issued.Add(1)
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: "of broker", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
		}}, nil
	})
	c.broker.PrependReactor("get", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		return c.podsFail.Load(), nil, errors.New("not now")
	})
	c.broker.PrependReactor("list", "pods", c.podsOfNode)
	return c
}

// podsOfNode lists the pods that a field selector wants, as an API server does. A fake one takes no notice of it.
func (c *tokenClusters) podsOfNode(action k8stesting.Action) (bool, runtime.Object, error) {
	pods := corev1.SchemeGroupVersion
	all, err := c.broker.Tracker().List(pods.WithResource("pods"), pods.WithKind("Pod"), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	wanted, list := action.(k8stesting.ListAction).GetListRestrictions().Fields, &corev1.PodList{}
	for _, pod := range all.(*corev1.PodList).Items {
		if wanted.Matches(fields.Set{"spec.nodeName": pod.Spec.NodeName}) {
			list.Items = append(list.Items, pod)
		}
	}
	return true, list, nil
}

// conflict refuses what is meant for another version of a Secret, as an API server does.
func (c *tokenClusters) conflict(action k8stesting.Action) (bool, runtime.Object, error) {
	patch := action.(k8stesting.PatchAction)
	if patch.GetPatchType() == types.ApplyPatchType {
		return false, nil, nil
	}
	c.relabelled.Add(1)
	var meant corev1.Secret
	if err := json.Unmarshal(patch.GetPatch(), &meant); err != nil {
		return true, nil, err
	}
	current, err := c.provider.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	if now := current.(*corev1.Secret); meant.UID != now.UID || meant.ResourceVersion != now.ResourceVersion {
		return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), now.Name, fmt.Errorf("%s %s", meant.UID, meant.ResourceVersion))
	}
	return false, nil, nil
}

// start begins to reflect.
func (c *tokenClusters) start() {
	c.t.Helper()
	broadcaster := record.NewBroadcaster()
	c.t.Cleanup(broadcaster.Shutdown)
	watcher := broadcaster.StartEventWatcher(func(event *corev1.Event) {
		if event.Type == corev1.EventTypeWarning {
			c.warned.Add(1)
		}
	})
	c.t.Cleanup(watcher.Stop)
	config := generic.ReflectorConfig{NumWorkers: 2, Type: consts.DenyList}
	// As Liqo's manager starts them, which tells in a variable of its own that they are ready.
	var ready atomic.Bool
	done := c.t.Context().Done()
	pods := informers.NewSharedInformerFactoryWithOptions(c.broker, 0, informers.WithTweakListOptions(func(list *metav1.ListOptions) {
		list.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", forge.LiqoNodeName).String()
	}))
	local := informers.NewSharedInformerFactoryWithOptions(c.broker, 0, informers.WithNamespace("twin"))
	remote := informers.NewSharedInformerFactoryWithOptions(c.provider, 0, informers.WithNamespace("twin-broker"))
	reflectors := []manager.Reflector{
		// Which of several virtual kubelets reflects Secrets is decided by an election, which a test does not hold.
		NewSecretReflector(false, &config, generic.ConcurrencyModeAll),
		NewTokenReflector(true, &config),
	}
	for _, reflector := range reflectors {
		reflector.Start(c.t.Context(), options.New(c.broker, pods.Core().V1().Pods()).
			WithReadinessFunc(ready.Load).WithEventBroadcaster(events.QuietInTransit(broadcaster)))
	}
	pods.Start(done)
	pods.WaitForCacheSync(done)
	forging := forge.NewForgingOpts(nil, nil)
	for _, reflector := range reflectors {
		reflector.StartNamespace(options.NewNamespaced().WithLocal("twin", c.broker, local).WithRemote("twin-broker", c.provider, remote).
			WithReadinessFunc(ready.Load).WithEventBroadcaster(events.QuietInTransit(broadcaster)).WithForgingOpts(&forging))
	}
	for _, factory := range []informers.SharedInformerFactory{local, remote} {
		factory.Start(done)
		factory.WaitForCacheSync(done)
	}
	ready.Store(true)
	// Liqo's queues try again, ever more seldom, until the informers are there.
	time.Sleep(600 * time.Millisecond)
}

// token returns the token that a pod at the provider would read; an empty one if there is no Secret.
func (c *tokenClusters) token() string {
	secret, err := c.provider.CoreV1().Secrets("twin-broker").Get(c.t.Context(), "web-token", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return string(secret.Data["kube-api-access-x"])
}

// reaches waits until the provider has a token.
func (c *tokenClusters) reaches(step, want string) {
	c.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); c.token() != want; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: the provider has token %q, want %q", step, c.token(), want)
		}
	}
}

// stays watches for a while that the provider has a token.
func (c *tokenClusters) stays(step, want string) {
	c.t.Helper()
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if got := c.token(); got != want {
			c.t.Fatalf("%s: the provider has token %q, want %q", step, got, want)
		}
	}
}

func (c *tokenClusters) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *tokenClusters) create(pod *corev1.Pod) {
	c.t.Helper()
	_, err := c.broker.CoreV1().Pods("twin").Create(c.t.Context(), pod, metav1.CreateOptions{})
	c.must(err)
}

func (c *tokenClusters) deletePod() {
	c.t.Helper()
	c.must(c.broker.CoreV1().Pods("twin").Delete(c.t.Context(), "web", metav1.DeleteOptions{}))
}

// issue has the consumer write a token.
func (c *tokenClusters) issue(token string) {
	c.t.Helper()
	secrets := c.broker.CoreV1().Secrets("twin")
	_, err := secrets.Update(c.t.Context(), original(token), metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(c.t.Context(), original(token), metav1.CreateOptions{})
	}
	c.must(err)
}

func (c *tokenClusters) deleteOriginal() {
	c.t.Helper()
	c.must(c.broker.CoreV1().Secrets("twin").Delete(c.t.Context(), "web-token", metav1.DeleteOptions{}))
}

// copied returns the Secret at the provider.
func (c *tokenClusters) copied() *corev1.Secret {
	c.t.Helper()
	secret, err := c.provider.CoreV1().Secrets("twin-broker").Get(c.t.Context(), "web-token", metav1.GetOptions{})
	c.must(err)
	return secret
}

// deletions counts how often the Secret was deleted at the provider. Each time it must be one that was looked at.
func (c *tokenClusters) deletions() (n int) {
	c.t.Helper()
	for _, action := range c.provider.Actions() {
		if !action.Matches("delete", "secrets") {
			continue
		}
		n++
		if only := action.(k8stesting.DeleteActionImpl).DeleteOptions.Preconditions; only == nil || only.UID == nil || *only.UID == "" {
			c.t.Error("whatever has the name is deleted")
		}
	}
	return n
}

// inTransitHere is pod web of the consumer, which asks for a token of whatever cluster it is in.
func inTransitHere() *corev1.Pod {
	return reflectiontest.PodOf("consumer", func(pod *corev1.Pod) { pod.Spec.Volumes = access(reflectedToken, issuedToken) })
}

// ownPod is pod web of the broker itself on one of its nodes.
func ownPod(node string) *corev1.Pod {
	return reflectiontest.PodOf("", func(pod *corev1.Pod) {
		pod.UID, pod.Spec.NodeName, pod.Spec.Volumes = "uid at broker", node, access(issuedToken)
	})
}

// TestTokensOfPodInTransit follows the tokens of a consumer's pod through the broker.
func TestTokensOfPodInTransit(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []runtime.Object
		// silent is whether the broker answers nobody who asks for a pod at first.
		silent bool
		steps  func(c *tokenClusters)
	}{
		"Life": {"The consumer's token reaches the provider each time, and goes with its Secret.", []runtime.Object{inTransitHere()}, false,
			func(c *tokenClusters) {
				c.issue("1")
				c.reaches("issued after the pod came", "1")
				c.issue("2")
				c.reaches("refreshed", "2")
				c.issue("3")
				c.reaches("refreshed again", "3")
				c.deletePod()
				c.stays("the pod ends here before its Secret", "3")
				c.deleteOriginal()
				c.reaches("the pod is gone", "")
				c.create(inTransitHere())
				c.issue("4")
				c.reaches("another pod of that name", "4")
				c.deleteOriginal()
				c.deletePod()
				c.reaches("all at once", "")
				if c.relabelled.Load() != 0 {
					c.t.Error("a copy had the labels that Liqo puts on tokens of the broker")
				}
			}},
		"SecretFirst": {"What is there before the pod is left to it.", []runtime.Object{original("1")}, false, func(c *tokenClusters) {
			c.reaches("started", "1")
			c.create(inTransitHere())
			c.stays("the pod comes", "1")
			if n := c.deletions(); n != 0 {
				c.t.Errorf("the Secret was deleted %d times", n)
			}
		}},
		"Restart": {"A virtual kubelet that starts deletes no token of a running pod.",
			[]runtime.Object{inTransitHere(), original("1"), leftBehind()}, false, func(c *tokenClusters) {
				c.stays("started", "1")
				if n := c.deletions(); n != 0 {
					c.t.Errorf("the Secret was deleted %d times", n)
				}
			}},
		"LeftBehind": {"A copy that an earlier version made is a copy like others.",
			[]runtime.Object{inTransitHere(), original("2"), leftBehind()}, false, func(c *tokenClusters) {
				c.reaches("started", "2")
				c.issue("3")
				c.reaches("refreshed", "3")
				c.deletePod()
				c.deleteOriginal()
				c.reaches("the pod is gone", "")
			}},
		"LeftBehindOfNodeOfThatName": {"Both clusters may call a node the same.",
			[]runtime.Object{inTransitHere(), original("2"), tokensOf("broker", "provider", "liqo-provider", "twin-broker", "1")}, false,
			func(c *tokenClusters) {
				c.reaches("started", "2")
			}},
		"LeftBehindForGood": {"Nobody has the pod any more.", []runtime.Object{leftBehind()}, false, func(c *tokenClusters) {
			c.reaches("started", "")
		}},
		"LeftBehindWithoutOriginal": {"The consumer has taken the token back.", []runtime.Object{inTransitHere(), leftBehind()}, false,
			func(c *tokenClusters) {
				c.reaches("started", "")
			}},
		"LeftBehindUnderOtherName": {"A consumer may label any of its Secrets so.",
			[]runtime.Object{
				edited(original("2"), func(s *corev1.Secret) { s.Name = "db" }),
				edited(leftBehind(), func(s *corev1.Secret) { s.Name = "db" }),
			}, false, func(c *tokenClusters) {
				reflectiontest.Eventually(c.t, func() bool {
					got, err := c.provider.CoreV1().Secrets("twin-broker").Get(c.t.Context(), "db", metav1.GetOptions{})
					return err == nil && string(got.Data["kube-api-access-x"]) == "2"
				})
			}},
		"BrokerDoesNotAnswer": {"Whose token it is must be known; it is asked again.", []runtime.Object{leftBehind()}, true,
			func(c *tokenClusters) {
				c.stays("the broker does not answer", "1")
				c.podsFail.Store(false)
				c.reaches("the broker answers", "")
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTokenClusters(t, tc.objects...)
			c.podsFail.Store(tc.silent)
			c.start()
			t.Log(tc.reason)
			tc.steps(c)
			c.deletions()
			if issued := c.issued.Load(); issued != 0 {
				t.Errorf("the broker issued %d tokens of its own", issued)
			}
			if warned := c.warned.Load(); warned != 0 {
				t.Errorf("there were %d warnings", warned)
			}
		})
	}
}

// TestTokensOfOwnPods holds that Liqo does with the tokens of the broker's own pods what it always does.
func TestTokensOfOwnPods(t *testing.T) {
	own := func(node, token string) *corev1.Secret {
		return tokensOf("broker", "provider", node, "twin-broker", token)
	}
	cases := map[string]struct {
		reason  string
		objects []runtime.Object
		// want is the token at the provider.
		want string
	}{
		"OnOtherNode": {
			"Another virtual kubelet for the same provider has put it there.", []runtime.Object{ownPod("other"), own("other", "1")}, "1",
		},
		"WithoutNode": {"An older Liqo does not name the node.",
			[]runtime.Object{edited(own("", "1"), func(s *corev1.Secret) { delete(s.Labels, forge.LiqoOriginClusterNodeName) })}, "1"},
		"Gone":      {"Liqo deletes what no pod of this node has.", []runtime.Object{own("liqo-provider", "1")}, ""},
		"NotOfThis": {"Somebody else made it.", []runtime.Object{tokensOf("other", "provider", "other", "twin-broker", "1")}, "1"},
		"MeantForOwnPod": {
			"A consumer gives no token to a pod of the broker.", []runtime.Object{ownPod("other"), own("other", "1"), original("2")}, "1",
		},
		"SecretOfThatName": {"A user's Secret does not take the place of a token.",
			[]runtime.Object{ownPod("other"), own("other", "1"), edited(original("2"), func(s *corev1.Secret) { s.Labels = nil })}, "1"},
		"SecretOfThatNameAfterPod": {"What was a token is for the virtual kubelet that has put it there.",
			[]runtime.Object{own("other", "1"), edited(original("2"), func(s *corev1.Secret) { s.Labels = nil })}, "1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTokenClusters(t, tc.objects...)
			c.start()
			c.reaches(tc.reason, tc.want)
			c.stays(tc.reason, tc.want)
			if tc.want != "" && !forge.IsServiceAccountSecret(c.copied()) {
				t.Errorf("%s: Liqo does not know it any more", tc.reason)
			}
		})
	}
}

// TestOwnTokensAreRefreshed has Liqo issue a token for a pod of the broker, beside a reflector of Secrets that relays others.
func TestOwnTokensAreRefreshed(t *testing.T) {
	c := newTokenClusters(t, ownPod("liqo-provider"))
	c.start()
	reflectiontest.Eventually(t, func() bool { return c.issued.Load() > 0 })
	secrets := c.provider.CoreV1().Secrets("twin-broker")
	var secret *corev1.Secret
	reflectiontest.Eventually(t, func() (ok bool) {
		var err error
		secret, err = secrets.Get(t.Context(), "web-token", metav1.GetOptions{})
		return err == nil
	})
	want := map[string]string{
		forge.LiqoOriginClusterIDKey: "broker", forge.LiqoDestinationClusterIDKey: "provider", forge.LiqoOriginClusterNodeName: "liqo-provider",
		forge.LiqoSASecretForPodNameKey: "web", forge.LiqoSASecretForServiceAccountKey: "default",
	}
	if diff := cmp.Diff(want, maps.Clone(secret.Labels)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	for _, action := range c.broker.Actions() {
		if action.Matches("get", "pods") {
			t.Error("this cluster is asked whose token that of a pod of this node is")
		}
	}
	c.deletePod()
	reflectiontest.Eventually(t, func() bool {
		_, err := secrets.Get(t.Context(), "web-token", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
