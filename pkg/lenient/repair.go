// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	kjson "sigs.k8s.io/json"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

// AnnotationUnreadable marks an object that lacks fields because they do not fit its type. It exists in memory only.
const AnnotationUnreadable = "brokering.liqo.io/unreadable"

// maxUnreadable bounds the text of the annotation.
const maxUnreadable = 1024

// Unreadable says which fields of an object were left out when it was read, and why; empty if it is whole. The text has at
// most 1024 bytes, also where somebody else wrote it.
func Unreadable(o metav1.Object) string {
	return excerpt.Of(o.GetAnnotations()[AnnotationUnreadable], maxUnreadable)
}

// UnreadableIn is Unreadable for one field of an object and what is below it, such as spec.capacity.
func UnreadableIn(o metav1.Object, field string) string {
	text := Unreadable(o)
	for fault := range strings.SplitSeq(text, "; ") {
		rest, found := strings.CutPrefix(fault, field)
		if found && (rest == "" || strings.ContainsRune(".[:", rune(rest[0]))) {
			return fault
		}
	}
	return ""
}

// Check says what of an object, in JSON, does not fit its Go type, and takes no time for what Kubernetes would take minutes to
// decode; nil if all fits. The typed object says only of what type it is.
func Check(raw []byte, typed runtime.Object) error {
	content, err := decode(raw)
	if err != nil {
		return err
	}
	if faults := misfits(content, typed); len(faults) > 0 {
		return errors.New(excerpt.Of(strings.Join(faults, "; "), maxUnreadable))
	}
	return nil
}

// decode decodes an object from JSON.
func decode(raw []byte) (map[string]any, error) {
	content := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return nil, errNoObject
	}
	return content, nil
}

// An object is logged once in the interval; so many are remembered for that.
const (
	logInterval = 10 * time.Minute
	logged      = 1024
)

// Names that all objects have in JSON.
const (
	listSuffix       = "List"
	fieldItems       = "items"
	fieldMetadata    = "metadata"
	fieldAnnotations = "annotations"
)

// dangerous finds what may be a quantity that takes minutes to compute with, such as 1e-999999999. It also finds other things.
var dangerous = regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{3,}[^0-9a-fA-F-]|[0-9.]{40,}`)

// errNoObject says that something cannot be read at all.
var errNoObject = errors.New("it is not an object of its kind")

// repairer takes out of objects what does not fit their types. It may be used concurrently.
type repairer struct {
	scheme *runtime.Scheme
	log    logr.Logger
	logged *lru.Cache // Times by the objects' UIDs.
}

func newRepairer(scheme *runtime.Scheme, log logr.Logger) *repairer {
	return &repairer{scheme: scheme, log: log, logged: lru.New(logged)}
}

// answer returns an answer of the API server, an object or a list, such that it can be decoded. What is not understood is
// returned as it is.
func (r *repairer) answer(body []byte) []byte {
	var list map[string]json.RawMessage
	var kind metav1.TypeMeta
	if json.Unmarshal(body, &kind) != nil || !strings.HasSuffix(kind.Kind, listSuffix) {
		return r.single(body, kind)
	}
	var items []json.RawMessage
	if !r.scheme.Recognizes(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)) ||
		json.Unmarshal(body, &list) != nil || json.Unmarshal(list[fieldItems], &items) != nil {
		return body
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, listSuffix)
	kept, changed := make([]json.RawMessage, 0, len(items)), false
	for _, item := range items {
		repaired, err := r.object(item, kind)
		changed = changed || err != nil || !bytes.Equal(item, repaired)
		if err == nil {
			kept = append(kept, repaired)
		}
	}
	if !changed {
		return body
	}
	list[fieldItems] = encode(kept)
	return encode(list)
}

// event is answer for an event of a watch. It returns nothing for one that is to be left out.
func (r *repairer) event(frame []byte) []byte {
	var event struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	var kind metav1.TypeMeta
	if json.Unmarshal(frame, &event) != nil || json.Unmarshal(event.Object, &kind) != nil {
		return frame
	}
	repaired, err := r.object(event.Object, kind)
	switch {
	case err != nil:
		return nil
	case bytes.Equal(repaired, event.Object):
		return frame
	}
	event.Object = repaired
	return encode(event)
}

func (r *repairer) single(body []byte, kind metav1.TypeMeta) []byte {
	if repaired, err := r.object(body, kind); err == nil {
		return repaired
	}
	return body
}

// object returns an object such that it can be decoded: as it is, without what does not fit its type, or its metadata alone.
// It fails if that cannot be decoded either.
func (r *repairer) object(raw []byte, kind metav1.TypeMeta) ([]byte, error) {
	gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
	typed, err := r.scheme.New(gvk)
	if err != nil {
		return raw, nil //nolint:nilerr // Nobody decodes it into a type.
	}
	decodes := func(raw []byte) bool {
		object, err := r.scheme.New(gvk)
		return err == nil && kjson.UnmarshalCaseSensitivePreserveInts(raw, object) == nil
	}
	// Nearly all objects fit as they are.
	if !dangerous.Match(raw) && decodes(raw) {
		return raw, nil
	}
	// What does not fit its type is taken out, and is named in an annotation and in the log.
	content, err := decode(raw)
	if err != nil {
		return nil, err
	}
	faults := misfits(content, typed)
	if len(faults) == 0 && decodes(raw) {
		return raw, nil
	}
	metadata, ok := content[fieldMetadata].(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	mark(metadata, faults)
	r.reportFaults(kind, content, faults)
	repaired := encode(content)
	if decodes(repaired) {
		return repaired, nil
	}
	// An object of which only the metadata is left can still be seen and deleted.
	rest := map[string]any{"apiVersion": kind.APIVersion, "kind": kind.Kind, fieldMetadata: metadata}
	mark(metadata, append(faults, fmt.Sprintf("all but the metadata: %v", errNoObject)))
	repaired = encode(rest)
	if !decodes(repaired) {
		return nil, errNoObject
	}
	return repaired, nil
}

// mark writes what does not fit into an annotation of an object whose metadata is given.
func mark(metadata map[string]any, faults []string) {
	annotations, ok := metadata[fieldAnnotations].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		metadata[fieldAnnotations] = annotations
	}
	annotations[AnnotationUnreadable] = excerpt.Of(strings.Join(faults, "; "), maxUnreadable)
}

// reportFaults logs what does not fit, once in a while for each object.
func (r *repairer) reportFaults(kind metav1.TypeMeta, content map[string]any, faults []string) {
	metadata, _ := content[fieldMetadata].(map[string]any)
	uid := fmt.Sprint(metadata["uid"])
	if last, ok := r.logged.Get(uid); ok && time.Since(last.(time.Time)) < logInterval {
		return
	}
	r.logged.Add(uid, time.Now())
	r.log.Info("Read an object without fields that do not fit its type", "kind", kind.Kind, "namespace", metadata["namespace"],
		"name", metadata["name"], "unreadable", excerpt.Of(strings.Join(faults, "; "), maxUnreadable))
}

// encode encodes what was decoded from JSON.
func encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encode what was decoded: %v", err)) // There is nothing in it that JSON cannot say.
	}
	return raw
}
