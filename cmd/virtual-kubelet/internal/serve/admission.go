// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

const (
	// DefaultClientCA is where kube-apiserver writes which authority signs the certificates of its
	// clients, and mostly its own for kubelets.
	DefaultClientCA = metav1.NamespaceSystem + "/extension-apiserver-authentication/client-ca-file"

	// kubeadm binds this group to cluster-admin, and puts it into the certificate that
	// kube-apiserver shows to kubelets.
	kubeadmAdmins = "kubeadm:cluster-admins"
	kubeadmConfig = "kubeadm-config"

	// What callers make the API server do must not slow down reflection, which has a
	// client of its own.
	reviewsPerSecond = 20
	reviewsAtOnce    = 40
	reviewTimeout    = 10 * time.Second

	// maxRequests are answered at once; a stream counts until it ends.
	maxRequests = 256
	// maxChecks callers are being identified at once, and maxChecksEach of each for whom they
	// count, so that those who have no right to be here cannot take the place of those who
	// have. What one makes the API server do takes less than two seconds of reviewTimeout.
	maxChecks, maxChecksEach = 256, 32

	tooMany = "too many requests"
)

// kubeadmAdminsSince is the version from which on kubeadm binds its group of administrators.
var kubeadmAdminsSince = version.MustParseGeneric("1.29.0")

// Admission decides who may use the API of the virtual kubelet, by the rights that the
// API server grants on the virtual node; see [attributes]. Peers have certificates of
// the same authority as kube-apiserver, so that to know who calls is never enough.
//
// What is asked of the API server needs no right in the case of a token, which is used
// to ask for its owner, and of certificates of system:masters, who may do everything.
// To ask for the owners of other certificates, the virtual kubelet needs to create
// SubjectAccessReviews; without that right, only the administrators of a cluster that
// kubeadm made are let in besides.
type Admission struct {
	node string
	// rolePatch names what gives the right to ask for the owners of certificates.
	rolePatch string
	// authority follows the authority that signs client certificates.
	authority    *dynamiccertificates.ConfigMapCAController
	certificates authenticator.Request
	client       kubernetes.Interface
	// as returns a client with the identity of whoever has a token.
	as func(token string) (kubernetes.Interface, error)
	// source tells for whom an address counts.
	source source.Func
	log    logr.Logger

	checks   *source.Limit
	requests places
	noRights sync.Once
}

// AdmissionConfig is what an admission goes by.
type AdmissionConfig struct {
	// NodeName is the virtual node, on which the API server grants rights.
	NodeName string
	// ClientCA tells which authority signs client certificates: NAMESPACE/CONFIGMAP/KEY.
	ClientCA string
	// RolePatch names what gives the right to create SubjectAccessReviews; who lacks it is told.
	RolePatch string
}

// NewAdmission returns an admission that asks the API server with client, and with what as
// returns as the owner of a token; of tells for whom an address counts. It reads nothing yet:
// until [Server.Run] has read the authority, no certificate is accepted.
func NewAdmission(
	config AdmissionConfig, client kubernetes.Interface, as func(string) (kubernetes.Interface, error), of source.Func, log logr.Logger,
) (*Admission, error) {
	namespace, name, key, err := SplitClientCA(config.ClientCA)
	if err != nil {
		return nil, err
	}
	authority, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", namespace, name, key, client)
	if err != nil {
		return nil, fmt.Errorf("follow the authority of client certificates: %w", err)
	}
	return &Admission{
		node: config.NodeName, rolePatch: config.RolePatch, authority: authority, client: client, as: as, source: of, log: log,
		certificates: x509.NewDynamic(authority.VerifyOptions, x509.CommonNameUserConversion),
		checks:       source.NewLimit(maxChecks, maxChecksEach), requests: make(places, maxRequests),
	}, nil
}

// SplitClientCA returns in which key of which ConfigMap the authority of client
// certificates is; the text is NAMESPACE/CONFIGMAP/KEY, or else an error names the flag.
func SplitClientCA(text string) (namespace, name, key string, err error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return "", "", "", fmt.Errorf("--kubelet-client-ca=%s: use NAMESPACE/CONFIGMAP/KEY", text)
	}
	return parts[0], parts[1], parts[2], nil
}

// Reviewers returns a client of this cluster for [NewAdmission], and what makes those with
// another identity. All share one limit.
func Reviewers(local *rest.Config) (kubernetes.Interface, func(token string) (kubernetes.Interface, error), error) {
	config := rest.CopyConfig(local)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewsAtOnce)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("set up the client that asks who may use the kubelet API: %w", err)
	}
	anonymous := rest.AnonymousClientConfig(config)
	return client, func(token string) (kubernetes.Interface, error) {
		own := rest.CopyConfig(anonymous)
		own.BearerToken = token
		return kubernetes.NewForConfig(own)
	}, nil
}

// runAuthority follows the authority of client certificates until the context ends.
func (a *Admission) runAuthority(ctx context.Context) { a.authority.Run(ctx, 1) }

// refusal is the answer to a request that is not let in.
type refusal struct {
	code int
	text string
}

func (r *refusal) Error() string { return r.text }

// guard lets those requests through whose senders may do what they ask.
func (a *Admission) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.admitRequest(r); err != nil {
			// Nobody keeps a connection who may not use it.
			w.Header().Set("Connection", "close")
			refused := &refusal{http.StatusInternalServerError, "the API server cannot be asked who may use this virtual kubelet"}
			if !errors.As(err, &refused) {
				a.log.V(1).Info("Cannot identify the callers of the kubelet API", "reason", err.Error())
			}
			if refused.code == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, refused.text, refused.code)
			return
		}
		admitted(r)
		if !a.requests.enter() {
			http.Error(w, tooMany, http.StatusServiceUnavailable)
			return
		}
		defer a.requests.leave()
		next.ServeHTTP(w, r)
	})
}

// admitRequest returns a refusal unless the sender of a request may do what it asks; any
// other error tells why nobody knows.
func (a *Admission) admitRequest(r *http.Request) error {
	// The error says what is wrong with a certificate; there may be a token besides.
	owner, certified, err := a.certificates.AuthenticateRequest(r)
	certified = certified && err == nil
	from := a.source(source.AddressOfRequest(r))
	if certified && !from.IsPeer() { // Liqo signs any common name for a peer.
		from = source.Caller(owner.User.GetName())
	}
	leave, ok := a.checks.Enter(from)
	if !ok {
		return &refusal{http.StatusServiceUnavailable, tooMany}
	}
	defer leave()
	wanted := attributes(a.node, r)
	if wanted.Verb == "" {
		return &refusal{http.StatusMethodNotAllowed, r.Method + " is not served"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	if certified {
		return a.admitCertificate(ctx, owner.User, wanted)
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && strings.TrimSpace(token) != "" {
		return a.admitToken(ctx, strings.TrimSpace(token), wanted)
	}
	return &refusal{http.StatusUnauthorized, "a client certificate of this cluster or a token is required"}
}

// connection is the key of the connection of a request.
type connection struct{}

// withConnection keeps the connection of a request for [admitted].
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connection{}, c)
}

// admitted makes the connection of a request one that is no stranger's.
func admitted(r *http.Request) {
	if c, ok := r.Context().Value(connection{}).(net.Conn); ok {
		httpserver.Known(c)
	}
}

// admitToken asks the API server as the owner of the token.
func (a *Admission) admitToken(ctx context.Context, token string, wanted *authorizationv1.ResourceAttributes) error {
	client, err := a.as(token)
	if err != nil {
		return fmt.Errorf("use the caller's token: %w", err)
	}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: wanted},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return &refusal{http.StatusUnauthorized, "the API server does not know this token"}
	case apierrors.IsForbidden(err):
		return forbidden("the owner of this token", wanted)
	case err != nil:
		return fmt.Errorf("ask what the owner of a token may do: %w", err)
	case !review.Status.Allowed:
		return forbidden("the owner of this token", wanted)
	}
	return nil
}

// admitCertificate asks the API server about the owner of a certificate.
func (a *Admission) admitCertificate(ctx context.Context, caller user.Info, wanted *authorizationv1.ResourceAttributes) error {
	if slices.Contains(caller.GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	review, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: caller.GetName(), Groups: append(slices.Clone(caller.GetGroups()), user.AllAuthenticated), ResourceAttributes: wanted,
		},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		a.noRights.Do(func() {
			a.log.Info("This virtual kubelet may not ask the API server who may use its API; "+
				"only system:masters, kubeadm's administrators and tokens are let in", "apply", a.rolePatch)
		})
		if slices.Contains(caller.GetGroups(), kubeadmAdmins) && a.madeByKubeadm(ctx) {
			return nil
		}
		return &refusal{http.StatusForbidden, fmt.Sprintf(
			"this virtual kubelet may not ask the API server whether %q may %s nodes/%s: apply %s of liqo-broker to ClusterRole "+
				"liqo-virtual-kubelet-local",
			caller.GetName(), wanted.Verb, wanted.Subresource, a.rolePatch)}
	case err != nil:
		return fmt.Errorf("ask what %q may do: %w", caller.GetName(), err)
	case !review.Status.Allowed:
		return forbidden(fmt.Sprintf("user %q", caller.GetName()), wanted)
	}
	return nil
}

// madeByKubeadm reports whether kubeadm's administrators are those of this cluster. In
// any other, somebody whose certificate Liqo had signed could call itself one.
func (a *Admission) madeByKubeadm(ctx context.Context) bool {
	if _, err := a.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, kubeadmConfig, metav1.GetOptions{}); err != nil {
		return false
	}
	info, err := a.client.Discovery().ServerVersion()
	if err != nil {
		return false
	}
	current, err := version.ParseGeneric(info.GitVersion)
	return err == nil && current.AtLeast(kubeadmAdminsSince)
}

func forbidden(who string, wanted *authorizationv1.ResourceAttributes) error {
	return &refusal{http.StatusForbidden, fmt.Sprintf("%s may not %s nodes/%s of node %s", who, wanted.Verb, wanted.Subresource, wanted.Name)}
}

// attributes returns the right that a request needs: that on the virtual node which the
// kubelet of a real node asks for too (k8s.io/kubernetes/pkg/kubelet/server/auth.go).
// One that runs a command needs the right to create also where it is a GET, as that of
// a WebSocket is. The verb is empty if the method is not served.
func attributes(node string, r *http.Request) *authorizationv1.ResourceAttributes {
	verb := map[string]string{
		http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update",
	}[r.Method]
	subresource := "proxy"
	switch first, _, _ := strings.Cut(path.Clean("/" + r.URL.Path)[1:], "/"); first {
	case "metrics", "stats":
		subresource = first
	case "logs":
		subresource = "log"
	case "exec", "attach", "portForward", "run":
		if verb != "" {
			verb = "create"
		}
	}
	return &authorizationv1.ResourceAttributes{Verb: verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: node}
}

// places bounds how much is done at once.
type places chan struct{}

// enter takes a place; false if there is none left.
func (p places) enter() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p places) leave() { <-p }
