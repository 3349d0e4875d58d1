// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/placement"
)

// labelSole is on the pods of StatefulSets, each of which has a name and perhaps
// storage that no other pod may use at the same time.
const labelSole = "statefulset.kubernetes.io/pod-name"

func isSole(labels map[string]string) bool {
	_, sole := labels[labelSole]
	return sole
}

// modes are the modes of failover by the names that people use.
var modes = map[v1alpha1.FailoverMode]placement.Mode{
	v1alpha1.FailoverNever:      placement.Never,
	v1alpha1.FailoverAfterGrace: placement.AfterGrace,
	v1alpha1.FailoverImmediate:  placement.Immediate,
}

// failoverOf returns the rule of a policy, or the default one if there is no policy.
func failoverOf(policy *v1alpha1.PlacementPolicy) placement.Failover {
	rule := placement.Failover{Mode: placement.AfterGrace, Grace: placement.DefaultGrace}
	if policy == nil {
		return rule
	}
	spec := &policy.Spec.Failover
	if mode, known := modes[spec.Mode]; known {
		rule.Mode = mode
	}
	if spec.Grace != nil {
		rule.Grace = spec.Grace.Duration
	}
	rule.ReplaceSole = spec.StatefulSets == v1alpha1.StatefulReplace
	return rule
}
