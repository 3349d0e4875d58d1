// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	openapi "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/deploy"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
)

// definition is where the manifests have the schema of policies.
const definition = "crds/brokering.liqo.io_placementpolicies.yaml"

// definitions are what the schema of policies says, as the API server has it, without the rules between fields.
type definitions struct{ *validate.SchemaValidator }

func readSchema() (definitions, error) {
	text, err := deploy.Files.ReadFile(definition)
	if err != nil {
		return definitions{}, fmt.Errorf("read the schema of policies: %w", err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema json.RawMessage
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return definitions{}, fmt.Errorf("read the schema of policies: %w", err)
	}
	for i := range crd.Spec.Versions {
		if version := &crd.Spec.Versions[i]; version.Name == v1alpha1.GroupVersion.Version {
			var of spec.Schema
			if err := json.Unmarshal(version.Schema.OpenAPIV3Schema, &of); err != nil {
				return definitions{}, fmt.Errorf("read the schema of policies: %w", err)
			}
			return definitions{validate.NewSchemaValidator(&of, nil, "", strfmt.Default)}, nil
		}
	}
	return definitions{}, fmt.Errorf("the schema of policies has no version %s", v1alpha1.GroupVersion.Version)
}

// faults returns what the schema does not admit.
func (s definitions) faults(d *Document, object any) apiv1.FaultsError {
	var all apiv1.FaultsError
	for _, err := range s.Validate(object).Errors {
		field := ""
		if at := (*openapi.Validation)(nil); errors.As(err, &at) {
			field = at.Name
		}
		says := strings.TrimPrefix(strings.TrimPrefix(err.Error(), field), " in body")
		all = append(all, d.fault(strings.TrimPrefix(field, "."), strings.TrimSpace(says)))
	}
	return all
}
