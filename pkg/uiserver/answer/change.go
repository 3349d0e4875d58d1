// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/uiserver"
)

// dryAll is the one kind of dry run that Kubernetes has.
const dryAll = "All"

// decode reads the JSON of a request, of so many bytes at most, with the fields of a value and no others.
func decode(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	body.DisallowUnknownFields()
	return body.Decode(into)
}

// mayChange reports whether what a request would change is only tried. It is not ok if the request was refused.
func (a *Answers) mayChange(w http.ResponseWriter, r *http.Request) (dry, ok bool) {
	asked := r.URL.Query().Get("dryRun")
	switch {
	case asked != "" && asked != dryAll:
		uiserver.Refuse(w, http.StatusUnprocessableEntity, "dryRun is All, or is left out")
	case a.cfg.ReadOnly:
		uiserver.Refuse(w, http.StatusForbidden, "nothing is changed here: the page was opened with --read-only")
	default:
		return asked != "", true
	}
	return false, false
}

// change changes something by a client, which only tries that in a dry run, and hands on the warnings of the API server.
func (a *Answers) change(w http.ResponseWriter, r *http.Request, dry bool, do func(context.Context, client.Client) error) error {
	c := a.client
	if dry {
		c = client.NewDryRunClient(c)
	}
	ctx, said := withWarnings(r.Context())
	if err := do(ctx, c); err != nil {
		return err
	}
	said.tell(w)
	return nil
}

// set gives a field of an object's spec a value, or tries that.
func (a *Answers) set(
	w http.ResponseWriter, r *http.Request, dry bool, o client.Object, field, value string, options ...client.PatchOption,
) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{field: value}})
	if err != nil {
		return err
	}
	return a.change(w, r, dry, func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), options...)
	})
}
