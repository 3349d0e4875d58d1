// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report tells brokers, from a consumer with Liqo 1.x, which views are installed, and how the consumer's own tunnels are. A report
// is a sign of life as well: it is written again and again.
//
// It does not decide what is acknowledged, nor when that is told, nor what brokers may believe then: package views of the core does.
package report

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
)

const (
	// every is how often a report is written that is the same: brokers believe one for five minutes.
	every = time.Minute
	// patience is how long a broker may take to answer before it is tried again.
	patience = 10 * time.Second
	// maxAnswer is how much of what a broker answers is read, and maxSaid how much of why it cannot be told is logged: brokers write both.
	maxAnswer, maxSaid = 1 << 20, 512
)

// errNotReady means that Liqo has no credentials for a broker yet.
var errNotReady = errors.New("this cluster has no identity at the broker yet")

// Config is what a Reporter needs.
type Config struct {
	// Cached reads Liqo's objects, and Live one Secret for each broker.
	Cached, Live client.Reader
	// Version is that of the program.
	Version string
	Clock   clock.WithTicker
	// Dial returns a client of the cluster that a kubeconfig names.
	Dial func(kubeconfig []byte) (kubernetes.Interface, error)
}

// Reporter tells brokers. It may be used concurrently.
type Reporter struct {
	cfg  Config
	wake chan struct{}

	mu      sync.Mutex
	brokers map[cluster.ID]*known
}

// known is a broker, and in which namespace here is what concerns it.
type known struct {
	*views.Telling
	tenant string
}

// New returns a Reporter.
func New(cfg Config) *Reporter {
	return &Reporter{cfg: cfg, wake: make(chan struct{}, 1), brokers: map[cluster.ID]*known{}}
}

// Planned notes what a plan acknowledges to a broker, which is told so, at once if it is new.
func (r *Reporter) Planned(broker cluster.ID, tenant string, p *views.Plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.known(broker)
	if k.tenant = tenant; k.Plan(p.Acknowledged, r.cfg.Clock.Now()) {
		r.look()
	}
}

// Believed returns what a broker may believe until another plan is noted. Of one that this Reporter has told nothing nobody knows what it
// believes.
func (r *Reporter) Believed(broker cluster.ID) *views.Belief {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known(broker).Believed(r.cfg.Clock.Now())
}

// known returns a broker. The caller holds the lock.
func (r *Reporter) known(broker cluster.ID) *known {
	k, is := r.brokers[broker]
	if !is {
		k = &known{Telling: views.NewTelling(r.cfg.Clock.Now())}
		r.brokers[broker] = k
	}
	return k
}

// look has Start look for brokers that are to be told.
func (r *Reporter) look() {
	select {
	case r.wake <- struct{}{}:
	default: // It looks soon anyway.
	}
}

// Start implements manager.Runnable: it tells brokers until ctx ends. None waits for another one.
func (r *Reporter) Start(ctx context.Context) error {
	var telling sync.WaitGroup
	defer telling.Wait()
	ticker := r.cfg.Clock.NewTicker(every)
	defer ticker.Stop()
	for {
		isTime := false
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			isTime = true
		case <-r.wake:
		}
		for _, t := range r.beginTelling(isTime) {
			telling.Go(func() {
				err := r.tell(ctx, &t)
				if err != nil {
					said := errors.New(excerpt.Of(err.Error(), maxSaid))
					ctrl.LoggerFrom(ctx).Error(said, "Cannot tell a broker which views are installed", "broker", t.broker)
				}
				r.endTelling(t.broker, err == nil)
			})
		}
	}
}

// telling is what a broker is being told.
type telling struct {
	broker       cluster.ID
	tenant       string
	acknowledged map[string]netip.Prefix
	at           time.Time
}

// beginTelling returns what brokers are told now, all of them if it is time to.
func (r *Reporter) beginTelling(all bool) []telling {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Clock.Now()
	var begun []telling
	for broker, k := range r.brokers {
		if acknowledged, begins := k.Begin(all, now); begins {
			begun = append(begun, telling{broker: broker, tenant: k.tenant, acknowledged: acknowledged, at: now})
		} else if k.IsOver(now) {
			delete(r.brokers, broker)
		}
	}
	return begun
}

// endTelling notes that a broker was told something, or that nobody knows whether it was.
func (r *Reporter) endTelling(broker cluster.ID, arrived bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known(broker).End(arrived, r.cfg.Clock.Now()) {
		r.look()
	}
}

// tell writes the report to one broker. If it says that it has, none arrives any more that was written before, because each is written over
// the one that was read.
func (r *Reporter) tell(ctx context.Context, t *telling) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := r.text(ctx, t)
	if err != nil {
		return err
	}
	name, namespace, err := v1.IdentityAt(ctx, r.cfg.Cached, t.broker, t.tenant)
	if err != nil {
		return err
	}
	if name.Name == "" {
		return errNotReady
	}
	var secret corev1.Secret
	if err := r.cfg.Live.Get(ctx, name, &secret); err != nil {
		return fmt.Errorf("get secret %s: %w", name, err)
	}
	remote, err := r.cfg.Dial(v1.KubeconfigOf(&secret))
	if err != nil {
		return fmt.Errorf("reach the broker by secret %s: %w", name, err)
	}
	// The broker makes it: this cluster can create nothing there.
	there := remote.CoreV1().ConfigMaps(namespace)
	told, err := there.Get(ctx, report.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get configmap %s at the broker: %w", report.Name, err)
	}
	told.Data = map[string]string{report.Key: text}
	if _, err := there.Update(ctx, told, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update configmap %s at the broker: %w", report.Name, err)
	}
	return nil
}

// text returns what a broker is told.
func (r *Reporter) text(ctx context.Context, t *telling) (string, error) {
	links, err := v1.Links(ctx, r.cfg.Cached)
	if err != nil {
		return "", err
	}
	told := report.Report{Agent: r.cfg.Version, At: t.at, Views: t.acknowledged}
	for i := range links {
		if l := &links[i]; l.Peer != "" {
			told.Links = append(told.Links, report.Link{Cluster: l.Peer, Connected: l.Connected, RoundTrip: l.RoundTrip, At: l.Measured})
		}
	}
	return told.Format()
}

// Dial returns a client of the cluster that a kubeconfig names. What would run a program, or read files of this one, is refused. Of each
// answer it reads a part only, and it goes nowhere else if one says so.
func Dial(kubeconfig []byte) (kubernetes.Interface, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile+config.CertFile+config.KeyFile+config.CAFile != "" {
		return nil, errors.New("the kubeconfig names programs or files")
	}
	config.Timeout, config.WarningHandler = patience, rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	caller, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	caller.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return kubernetes.NewForConfigAndClient(config, caller)
}

// bounded reads no more than maxAnswer of an answer.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(request)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}
