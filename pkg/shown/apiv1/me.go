// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

// Me is who asks, and what of this API is there for them.
type Me struct {
	Name     string   `json:"name" doc:"Who asks, as the API server calls them."`
	May      []string `json:"may" nullable:"false" doc:"What else than reading they may do, as verb and resource: update providers."`
	Broker   Cluster  `json:"broker" doc:"The broker's cluster."`
	Context  string   `json:"context,omitempty" doc:"Of the kubeconfig by which the plugin asks."`
	Version  string   `json:"version,omitempty" doc:"Of the program that answers."`
	ReadOnly bool     `json:"readOnly,omitempty" doc:"Nothing can be changed here, whatever they may."`
	Kinds    []Access `json:"kinds" nullable:"false" doc:"The kinds of the stream."`
}

// Access is whether somebody may see a kind.
type Access struct {
	Kind    string   `json:"kind"`
	Missing []string `json:"missing,omitempty" nullable:"false" doc:"The rights without which it is not shown, as verb and resource: list nodes."`
}
