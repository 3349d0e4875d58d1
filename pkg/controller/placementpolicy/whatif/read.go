// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
)

// ErrNothing means that there is no policy in a text.
var ErrNothing = errors.New("has no PlacementPolicy")

// maxFaults is how many faults of one text are told.
const maxFaults = 8

// Document is a policy that can be read, and where its fields are in the text.
type Document struct {
	Policy *v1alpha1.PlacementPolicy

	object map[string]any
	before int // Lines of the text before it.
	root   *yamlv3.Node
}

// Read reads the policies of a text as YAML or JSON, of which there is at least one and nothing else: what would be passed over would
// count as tried. The error is [ErrNothing], or [apiv1.FaultsError].
func (t *Trier) Read(text []byte) ([]Document, error) {
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer documents.Close()
	buffer := make([]byte, len(text)+1)
	var all []Document
	for read := 0; ; {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, apiv1.FaultsError{{Says: err.Error()}}
		}
		one := Document{}
		if at := bytes.Index(text[read:], buffer[:n]); at >= 0 {
			one.before = bytes.Count(text[:read+at], []byte("\n"))
			read += at + n
		}
		is, err := t.parse(&one, bytes.Clone(buffer[:n]))
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil, ErrNothing
	}
	return all, nil
}

// parse reads one document; false if there is nothing in it.
func (t *Trier) parse(d *Document, text []byte) (bool, error) {
	// What it is.
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return false, apiv1.FaultsError{d.notYAML(err)}
	}
	var object any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &object); err != nil {
		return false, apiv1.FaultsError{d.notYAML(err)}
	}
	if object == nil {
		return false, nil
	}
	var node yamlv3.Node
	if err := yamlv3.Unmarshal(text, &node); err == nil && len(node.Content) > 0 {
		d.root = node.Content[0]
	}
	var kind metav1.TypeMeta
	err = json.Unmarshal(asJSON, &kind)
	if err != nil || kind.APIVersion != v1alpha1.GroupVersion.String() || kind.Kind != "PlacementPolicy" {
		return false, apiv1.FaultsError{d.fault("kind", fmt.Sprintf("this is a %s of %q, and not only PlacementPolicies of %s are here",
			kind.Kind, kind.APIVersion, v1alpha1.GroupVersion))}
	}

	d.object, _ = object.(map[string]any)

	// What the schema says, and then what it does not know: a field that is misspelt is an error, as it is for the API server.
	faults := t.schema.faults(d, object)
	d.Policy = &v1alpha1.PlacementPolicy{}
	strict, err := kjson.UnmarshalStrict(asJSON, d.Policy)
	for _, s := range strict {
		field := ""
		if at := kjson.FieldError(nil); errors.As(s, &at) {
			field = at.FieldPath()
		}
		faults = append(faults, d.fault(field, s.Error()))
	}
	if err != nil && len(faults) == 0 {
		field := ""
		if at := new(json.UnmarshalTypeError); errors.As(err, &at) {
			field = at.Field
		}
		faults = append(faults, d.fault(field, strings.TrimPrefix(err.Error(), "json: ")))
	}
	if wrong := validation.IsDNS1123Subdomain(d.Policy.Name); len(faults) == 0 && len(wrong) > 0 {
		faults = append(faults, d.fault("metadata.name", strings.Join(wrong, "; ")))
	}
	if len(faults) > 0 {
		return false, faults[:min(len(faults), maxFaults)]
	}
	return true, nil
}

// lineIn finds the line in an error of the parser of YAML.
var lineIn = regexp.MustCompile(`(?s)line (\d+): (.*)`)

// notYAML returns what keeps a text from being YAML.
func (d *Document) notYAML(err error) apiv1.Fault {
	says := strings.TrimPrefix(err.Error(), "yaml: ")
	fault := apiv1.Fault{Says: "this is not YAML: " + says}
	if found := lineIn.FindStringSubmatch(says); found != nil {
		line, _ := strconv.Atoi(found[1]) // It is digits.
		fault.Line, fault.Says = d.before+line, "this is not YAML: "+strings.ReplaceAll(strings.TrimSpace(found[2]), "\n", "; ")
	}
	return fault
}

// fault returns what is wrong with a field, such as spec.filters[0], at the place of the deepest part of it that is there.
func (d *Document) fault(field, says string) apiv1.Fault {
	fault := apiv1.Fault{Field: field, Says: says}
	if at, _ := d.find(field); at != nil {
		fault.Line, fault.Column = d.before+at.Line, at.Column
	}
	return fault
}

// find returns where a field is in the text: its name, an entry of a list, or as much of the way there as there is. The value is nil unless
// all of it is there.
func (d *Document) find(field string) (at, value *yamlv3.Node) {
	if d.root == nil || field == "" {
		return nil, nil
	}
	at, value = d.root, d.root
	for _, step := range steps(field) {
		next := (*yamlv3.Node)(nil)
		switch i, err := strconv.Atoi(step); {
		case value.Kind == yamlv3.SequenceNode && err == nil && i >= 0 && i < len(value.Content):
			at, next = value.Content[i], value.Content[i]
		case value.Kind == yamlv3.MappingNode:
			for j := 0; j+1 < len(value.Content); j += 2 {
				if value.Content[j].Value == step {
					at, next = value.Content[j], value.Content[j+1]
				}
			}
		}
		if next == nil {
			return at, nil
		}
		if value = next; value.Kind == yamlv3.AliasNode {
			value = value.Alias
		}
	}
	return at, value
}

// steps returns the parts of the name of a field: a key with dots is in brackets.
func steps(field string) []string {
	var all []string
	for field != "" {
		switch end := strings.IndexAny(field, ".["); {
		case field[0] == '[':
			key, rest, _ := strings.Cut(field[1:], "]")
			all, field = append(all, strings.Trim(key, `"`)), strings.TrimPrefix(rest, ".")
		case end < 0:
			return append(all, field)
		default:
			all = append(all, field[:end])
			field = strings.TrimPrefix(field[end:], ".")
		}
	}
	return all
}
