// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/test/worlds/apiserver"
)

// process is one run of a connector: it dies at most once, at a call of its API server or of Liqo.
type process struct {
	w    *world
	host *host
	name string
	// cache is what it has seen.
	cache *apiserver.Cache
	// shows is told of Sales as soon as it has seen them; nil in a process that sells nothing.
	shows toolscache.ResourceEventHandler
	dead  bool
	// failed is whether one of its calls has, and it does not know whether it was made.
	failed bool
	// pause lets others go on before a call; it returns false if the process is to die. It is nil in a process that is not slow.
	pause func() bool
}

// newProcess starts a connector in a cluster. It has seen everything.
func (h *host) newProcess() *process {
	h.w.processes++
	return &process{w: h.w, host: h, name: fmt.Sprintf("%s#%d", h.name, h.w.processes), cache: apiserver.NewCache(h.server, false)}
}

// behind lets the process see some of what has happened.
func (p *process) behind() {
	before := all(p.cache, &connectorv1alpha1.Sale{})
	if p.w.calm {
		p.cache.CatchUp()
	} else {
		p.cache.Follow(p.w.r, p.w.behind)
	}
	p.show(before)
}

// before is called before a call; its error is that of the call, which is not made.
func (p *process) before(writes bool, what string) error {
	w := p.w
	if p.pause != nil && !p.dead && !p.pause() {
		p.dead = true
	}
	switch {
	case p.dead:
		return errKilled
	case writes && w.once(w.killed):
		return p.die("before", what)
	case w.once(w.unknown):
		p.failed = true
		return fmt.Errorf("%s: %w", what, errUnknown)
	}
	return nil
}

// after is called after a call that writes; its error is that of the call, which was made.
func (p *process) after(what string) error {
	w := p.w
	switch {
	case w.once(w.killed):
		return p.die("after", what)
	case w.once(w.unknown):
		p.failed = true
		return fmt.Errorf("%s (done): %w", what, errUnknown)
	}
	return nil
}

func (p *process) die(when, what string) error {
	p.dead = true
	p.w.kills++
	p.w.notef("%s dies %s %s", p.name, when, what)
	return errKilled
}

// call makes a call that writes, or does something.
func (p *process) call(what string, do func() error) error {
	if err := p.before(true, what); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	p.w.judge(p.host)
	return p.after(what)
}

// kube is how a process reads and writes the objects of its cluster.
type kube struct {
	client.Client // None: a method that is missing here panics.
	*process

	from *apiserver.Cache
}

// client returns a client that reads from the cache of the process, and reader one that reads from the API server.
func (p *process) client() client.Client { return &kube{process: p, from: p.cache} }
func (p *process) reader() client.Client { return &kube{process: p, from: p.host.live} }

func (k *kube) Scheme() *runtime.Scheme { return k.w.scheme }

func (k *kube) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := k.before(false, "get "+key.Name); err != nil {
		return err
	}
	return k.from.Get(ctx, key, o, options...)
}

func (k *kube) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := k.before(false, "list"); err != nil {
		return err
	}
	return k.from.List(ctx, list, options...)
}

// write writes an object. One that is changed may have been changed by somebody else.
func (k *kube) write(what string, o client.Object, do func() error) error {
	what += fmt.Sprintf(" %T %s", o, o.GetName())
	return k.call(what, func() error {
		if o.GetResourceVersion() != "" && k.w.once(k.w.conflict) {
			return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, o.GetName(), errors.New("somebody else was faster"))
		}
		err := do()
		if err == nil {
			k.w.notef("  %s: %s %s", k.name, what, k.host.thing(o))
		}
		return err
	})
}

func (k *kube) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return k.write("create", o, func() error { return k.host.server.Create(o) })
}

func (k *kube) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return k.write("update", o, func() error { return k.host.server.Update(o, false) })
}

func (k *kube) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	return k.write("delete", o, func() error { return k.host.server.Delete(o, false, (&client.DeleteOptions{}).ApplyOptions(options)) })
}

func (k *kube) Status() client.SubResourceWriter { return statusWriter{k} }

// statusWriter writes statuses.
type statusWriter struct{ *kube }

func (statusWriter) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	panic("no connector creates a subresource")
}

func (statusWriter) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	panic("no connector applies a status")
}

func (s statusWriter) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.write("update the status of", o, func() error { return s.host.server.Update(o, true) })
}

func (statusWriter) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	panic("no connector patches a status")
}

// nothing is the client of somebody who writes nothing.
type nothing struct{ client.Client }
