// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

type meInput struct {
	Authorization string `header:"Authorization" hidden:"true"`
}

// told are the rights of which Me tells: what the changes, the plans, the lists and the stream of events need.
func told() []delegatedauth.Right {
	rights := []delegatedauth.Right{right("update", "providers"), right("update", "consumers"), right("get", "plans"),
		right("get", "placementpolicies")}
	readers := readers()
	for _, kind := range shown.Kinds() {
		read := "list"
		if kind == shown.Advice || kind == shown.Status { // There is no list of these.
			read = "get"
		}
		for _, verb := range []string{read, "watch"} {
			if of := right(verb, readers[kind].resource); !slices.Contains(rights, of) {
				rights = append(rights, of)
			}
		}
	}
	return rights
}

// me registers what tells callers who they are.
func (v *v1) me() {
	op := v.operation("getMe", http.MethodGet, "/me", named().ofPeople(), "Get who you are, and what you may do")
	op.Description = "Needs a valid token, and no right. Consumers are refused."
	rights := told()
	rest.Register(v.api, op, func(ctx context.Context, in *meInput) (*struct{ Body apiv1.Me }, error) {
		token := delegatedauth.BearerIn(in.Authorization)
		name, has, err := v.cfg.reviewAll(ctx, token, rights)
		if err != nil {
			return nil, err
		}
		me := apiv1.Me{Name: sheet.Sentence(name), May: []string{}, Version: version.String(), Expires: expiryOf(token)}
		if own := v.cfg.Own; own.ID != "" {
			me.Broker = &apiv1.Cluster{ID: string(own.ID), Name: own.Name}
		}
		lacks := map[delegatedauth.Right]bool{}
		for i, right := range rights {
			if lacks[right] = !has[i]; has[i] {
				me.May = append(me.May, may(right))
			}
		}
		readers := readers()
		for _, kind := range shown.Kinds() {
			of := apiv1.Watchable{Kind: string(kind)}
			if needed := right("watch", readers[kind].resource); lacks[needed] {
				of.Missing = []string{may(needed)}
			}
			me.Kinds = append(me.Kinds, of)
		}
		return &struct{ Body apiv1.Me }{me}, nil
	})
}

// may is how Me tells of a right.
func may(of delegatedauth.Right) string { return of.Verb + " " + of.Resource }
