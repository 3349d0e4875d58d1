// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// peers are clusters with a Liqo that peers as soon as it is told to, by their names.
type peers map[string]*peerCluster

type peerCluster struct {
	client.Client

	id cluster.Identity
	// asked counts how often each peer was asked to provide, written how often anything was.
	asked   map[cluster.ID]int
	written int
	// deaf has it answer nobody.
	deaf bool
}

func (p peers) add(t *testing.T, name string, objects ...client.Object) {
	t.Helper()
	c := &peerCluster{id: cluster.Identity{ID: cluster.ID("id-of-" + name), Name: name}, asked: map[cluster.ID]int{}}
	manager := pod("controller-manager", "--kubelet-image=liqo/virtual-kubelet:v0.9.4")
	manager.Status.UpdatedReplicas, manager.Status.Replicas, manager.Status.AvailableReplicas = 1, 1, 1
	objects = append(append(objects, manager, virtualKubeletRights()), liqotest.Liqo(c.id, "secret-"+name)...)
	c.Client = at(t, line09{}, interceptor.Funcs{}, objects...)
	p[name] = c
}

// through returns the client of a cluster by which a command reaches it: each write of a foreign cluster has Liqo do its part.
func (p peers) through(t *testing.T, name string) client.Client {
	t.Helper()
	c := p[name]
	base, is := c.Client.(client.WithWatch)
	if !is {
		t.Fatal("the client cannot watch")
	}
	return interceptor.NewClient(base, interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
			err := to.Create(ctx, o, options...)
			if err != nil || len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0 {
				return err
			}
			return p.wrote(ctx, c, o)
		},
		Update: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			c.written++
			return to.Update(ctx, o, options...)
		},
		Patch: func(ctx context.Context, to client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			err := to.Patch(ctx, o, patch, options...)
			if err != nil || len((&client.PatchOptions{}).ApplyOptions(options).DryRun) > 0 {
				return err
			}
			return p.wrote(ctx, c, o)
		},
	})
}

// wrote does what Liqo does on both sides when a cluster is told to consume.
func (p peers) wrote(ctx context.Context, c *peerCluster, o client.Object) error {
	if fc, is := o.(*v09.ForeignCluster); is && v09.Consumes(fc) {
		return p.peered(ctx, c, fc)
	}
	if _, asks := o.(*authorizationv1.SelfSubjectAccessReview); !asks {
		c.written++
	}
	return nil
}

func (p peers) peered(ctx context.Context, c *peerCluster, fc *v09.ForeignCluster) error {
	c.written++
	of := v09.Identity(fc)
	c.asked[of.ID]++
	var other *peerCluster
	for _, each := range p {
		if each.id.ID == of.ID {
			other = each
		}
	}
	known, err := v09.ForeignClusterOf(ctx, other, c.id.ID)
	if err != nil || other.deaf || known != nil && known.Spec.IncomingPeeringEnabled == "No" {
		return err
	}
	// The one who asks: what Liqo writes down of the peering, its tunnel and its node.
	liqotest.SetPeering(fc, true, v09.Incoming(fc).Established)
	fc.Status.TenantNamespace.Local = liqotest.Tenant(of)
	if err := c.Update(ctx, fc); err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, liqotest.Tunnel(of, "1ms", time.Now()))); err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, liqotest.VirtualNode(of, true))); err != nil {
		return err
	}
	// The one who is asked learns the token of who asks, and where it is reached.
	var token corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: "liqo", Name: v09.AuthTokenName}, &token); err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(other.Create(ctx, v09.PeerToken("liqo", c.id.ID, v09.Token(&token)))); err != nil {
		return err
	}
	twin := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: v09.TwinNameOfLiqo(c.id), Name: networkManager}}
	return client.IgnoreAlreadyExists(other.Create(ctx, twin)) // As a broker reflects it.
}

func (p peers) joiner(t *testing.T, name string) Joiner {
	t.Helper()
	return Joiner{Called: name, Client: p.through(t, name)}
}

// knows returns the foreign cluster that one cluster has of another.
func (p peers) knows(t *testing.T, one, other string) *v09.ForeignCluster {
	t.Helper()
	fc, err := v09.ForeignClusterOf(t.Context(), p[one].Client, p[other].id.ID)
	if err != nil {
		t.Fatal(err)
	}
	return fc
}

func (p peers) token(t *testing.T, name string) string {
	t.Helper()
	var secret corev1.Secret
	if err := p[name].Get(t.Context(), client.ObjectKey{Namespace: "liqo", Name: v09.AuthTokenName}, &secret); err != nil {
		t.Fatal(err)
	}
	return v09.Token(&secret)
}

func brokerDeployment() *appsv1.Deployment { return ofOurs(BrokerName, "x/liqo-broker:v0.1.0") }

// three are a broker, a provider and a consumer that do not know each other.
func three(t *testing.T) peers {
	t.Helper()
	p := peers{}
	p.add(t, "milan", brokerDeployment())
	p.add(t, "turin")
	p.add(t, "rome")
	return p
}

var quick = Options{Timeout: time.Second}

// TestJoin has three clusters become a federation: who is to have what, and no more; the tokens that went around are replaced; and the
// second time nothing is left to do.
func TestJoin(t *testing.T) {
	for name, direct := range map[string]bool{"Relayed": false, "Direct": true} {
		t.Run(name, func(t *testing.T) {
			p := three(t)
			var found []string
			j := Joining{
				Broker: p.joiner(t, "milan"), Providers: []Joiner{p.joiner(t, "turin")}, Consumers: []Joiner{p.joiner(t, "rome")}, Direct: direct,
				Found: func(who Joiner, s *Setup) { found = append(found, who.Called+" is "+s.Own.Name) },
			}
			var out strings.Builder
			if err := Join(t.Context(), j, quick, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if want := []string{"milan is milan", "turin is turin", "rome is rome"}; !slices.Equal(found, want) {
				t.Errorf("it has found %v, want %v", found, want)
			}
			for _, pair := range []struct {
				consumer, provider string
				has, gives         bool
			}{
				{"milan", "turin", true, false}, {"rome", "milan", true, true}, {"milan", "rome", true, true},
				{"rome", "turin", direct, false},
			} {
				fc := p.knows(t, pair.consumer, pair.provider)
				if !pair.has {
					if fc != nil {
						t.Errorf("%s peers with %s", pair.consumer, pair.provider)
					}
					continue
				}
				if fc == nil || !v09.Consumes(fc) || v09.Provides(fc) != pair.gives || fc.Spec.ForeignAuthURL != "https://192.0.2.7" {
					t.Errorf("%s knows %s as %+v", pair.consumer, pair.provider, fc)
				}
			}
			if p.knows(t, "turin", "milan") != nil {
				t.Error("the provider was told to have something of the broker")
			}
			for cluster := range p {
				if got := p.token(t, cluster); got == "secret-"+cluster || got == "" {
					t.Errorf("the token of %s is still %q", cluster, got)
				}
			}
			var manager appsv1.Deployment
			if err := p["rome"].Get(t.Context(), client.ObjectKey{Namespace: "liqo", Name: controllerManager}, &manager); err != nil {
				t.Fatal(err)
			}
			if args := manager.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, flagOf(p["milan"].id)) {
				t.Errorf("the consumer is not prepared: %v", args)
			}
			if strings.Contains(out.String(), "secret-") {
				t.Errorf("a token is printed:\n%s", out.String())
			}

			for _, c := range p {
				c.written = 0
			}
			out.Reset()
			if err := Join(t.Context(), j, quick, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			for cluster, c := range p {
				if c.written != 0 {
					t.Errorf("%s is written to %d times by the second run:\n%s", cluster, c.written, out.String())
				}
			}
		})
	}
}

// TestJoinTries has a dry run change nothing.
func TestJoinTries(t *testing.T) {
	for _, tried := range []bool{false, true} {
		p := three(t)
		options := quick
		options.DryRun, options.Tried = true, tried
		var out strings.Builder
		err := Join(t.Context(), Joining{
			Broker: p.joiner(t, "milan"), Providers: []Joiner{p.joiner(t, "turin")}, Consumers: []Joiner{p.joiner(t, "rome")},
		}, options, &out)
		if err != nil || !strings.Contains(out.String(), "would create ForeignCluster turin") ||
			!strings.Contains(out.String(), "would take the steps of prepare") || strings.Contains(out.String(), "secret-turin") {
			t.Errorf("tried %t: %v\n%s", tried, err, out.String())
		}
		for name, c := range p {
			if c.written > 0 || p.token(t, name) != "secret-"+name {
				t.Errorf("tried %t: %s is written to", tried, name)
			}
		}
	}
}

// TestJoinKeeps has a federation keep its tokens, and a peering that people have made as they have made it.
func TestJoinKeeps(t *testing.T) {
	p := three(t)
	made := v09.NewForeignCluster(p["turin"].id, "https://198.51.100.7")
	v09.Consume(made, "")
	liqotest.SetPeering(made, true, false)
	made.Status.TenantNamespace.Local = liqotest.Tenant(p["turin"].id)
	for _, o := range []client.Object{made, liqotest.Tunnel(p["turin"].id, "1ms", time.Now()), liqotest.VirtualNode(p["turin"].id, true)} {
		if err := p["milan"].Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	j := Joining{Broker: p.joiner(t, "milan"), Providers: []Joiner{p.joiner(t, "turin")}, KeepTokens: true}
	if err := Join(t.Context(), j, quick, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := p.knows(t, "milan", "turin").Spec.ForeignAuthURL; got != "https://198.51.100.7" || p["milan"].asked[p["turin"].id.ID] != 0 {
		t.Errorf("the peering has become another one: %s", got)
	}
	j.Consumers = []Joiner{p.joiner(t, "rome")}
	if err := Join(t.Context(), j, quick, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := p.token(t, "milan"); got != "secret-milan" {
		t.Errorf("the token is %q", got)
	}
}

// TestJoinRefuses has clusters that cannot become a federation, or not so: nothing is written, and the error names what it is.
func TestJoinRefuses(t *testing.T) {
	p := three(t)
	p.add(t, "oslo")
	p.add(t, "bern")
	inBand := peer("id-of-turin", "turin")
	inBand.Spec.PeeringType = "InBand"
	bought := peer("id-of-rome", "rome")
	bought.Annotations = map[string]string{annotationContract: "true"}
	p.add(t, "lyon", brokerDeployment(), inBand, bought)
	empty := fake.NewClientBuilder().Build()
	milan, turin, rome, lyon := p.joiner(t, "milan"), p.joiner(t, "turin"), p.joiner(t, "rome"), p.joiner(t, "lyon")
	again := Joiner{Called: "turin-again", Client: turin.Client}
	for name, tc := range map[string]struct {
		reason string
		j      Joining
		want   string
	}{
		"Nobody":   {"there is nothing to do", Joining{Broker: milan}, "name a provider or a consumer"},
		"NoBroker": {"a mistyped context would become one", Joining{Broker: turin, Consumers: []Joiner{rome}}, "is no broker"},
		"Itself":   {"the same context twice", Joining{Broker: milan, Providers: []Joiner{milan}}, `"milan" is the broker itself`},
		"Twice": {"two contexts of one cluster", Joining{Broker: milan, Providers: []Joiner{turin, again}},
			`"turin" and "turin-again" are one and the same cluster`},
		"InBand":   {"its API servers may not reach each other", Joining{Broker: lyon, Providers: []Joiner{turin}}, "in band"},
		"Contract": {"a connector looks after it", Joining{Broker: lyon, Providers: []Joiner{rome}}, "by a contract"},
		"NoLiqo":   {"it is no cluster of Liqo", Joining{Broker: milan, Providers: []Joiner{{Called: "paris", Client: empty}}}, "paris: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := Join(t.Context(), tc.j, quick, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			}
			for name, c := range p {
				if c.written > 0 {
					t.Errorf("%s is written to", name)
				}
			}
		})
	}
}

// TestJoinBoth has a cluster become a provider and a consumer, at once and one after the other: the broker, which lets no provider in, lets
// this one in, by the patch that is written for people who peer by hand.
func TestJoinBoth(t *testing.T) {
	const opens = `{"incomingPeeringEnabled":"Yes"}`
	if page, err := os.ReadFile("../../docs/install.md"); err != nil ||
		!strings.Contains(string(page), `kubectl patch foreigncluster PROVIDER --type merge --patch '{"spec":`+opens+`}'`) {
		t.Errorf("the page of the installation has another patch: %v", err)
	}
	for name, later := range map[string]bool{"AtOnce": false, "Later": true} {
		t.Run(name, func(t *testing.T) {
			p := three(t)
			var patches []string
			milan, is := p.through(t, "milan").(client.WithWatch)
			if !is {
				t.Fatal("the client cannot watch")
			}
			noted := interceptor.NewClient(milan, interceptor.Funcs{
				Patch: func(ctx context.Context, to client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
					var text struct {
						Spec json.RawMessage `json:"spec"`
					}
					data, err := patch.Data(o)
					if _, is := o.(*v09.ForeignCluster); is {
						err = errors.Join(err, json.Unmarshal(data, &text))
						patches = append(patches, string(text.Spec))
					}
					return errors.Join(err, to.Patch(ctx, o, patch, options...))
				},
			})
			j := Joining{Broker: Joiner{Called: "milan", Client: noted}, Providers: []Joiner{p.joiner(t, "turin")}}
			var out strings.Builder
			if later {
				if err := Join(t.Context(), j, quick, &out); err != nil || v09.Provides(p.knows(t, "milan", "turin")) {
					t.Fatalf("a provider is let in: %v\n%s", err, out.String())
				}
			}
			j.Consumers = j.Providers
			if err := Join(t.Context(), j, quick, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			for one, other := range map[string]string{"milan": "turin", "turin": "milan"} {
				if fc := p.knows(t, one, other); fc == nil || !v09.Consumes(fc) || !v09.Provides(fc) {
					t.Errorf("%s knows %s as %+v", one, other, fc)
				}
			}
			if later != slices.Contains(patches, opens) {
				t.Errorf("the broker is changed by %v", patches)
			}
			if says := "turin is a consumer too, and provides when somebody says so: kubectl liqo-broker enable id-of-turin"; !strings.Contains(
				out.String(), says) {
				t.Errorf("it does not say %q:\n%s", says, out.String())
			}
		})
	}
}

// TestJoinWaits has a provider that does not answer: the error says whose peering it is, and the next run goes on.
func TestJoinWaits(t *testing.T) {
	p := three(t)
	p["turin"].deaf = true
	j := Joining{Broker: p.joiner(t, "milan"), Providers: []Joiner{p.joiner(t, "turin")}}
	short := Options{Timeout: 10 * time.Millisecond}
	err := Join(t.Context(), j, short, io.Discard)
	if err == nil || !Begun(err) || !strings.Contains(err.Error(), "wait until milan reaches turin") ||
		!strings.Contains(err.Error(), "not established") {
		t.Errorf("it waits for nobody: %v", err)
	}
	if p.token(t, "turin") != "secret-turin" {
		t.Error("the token is another one before it was used")
	}
	p["turin"].deaf = false
	if err := p.peered(t.Context(), p["milan"], p.knows(t, "milan", "turin")); err != nil { // As Liqo does when it tries again.
		t.Fatal(err)
	}
	if err := Join(t.Context(), j, quick, io.Discard); err != nil || p.token(t, "turin") == "secret-turin" {
		t.Errorf("the next run does not finish it: %v", err)
	}
}
