// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lines_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines/linestest"
)

// served is an API server's resources, by group and version. Of a version without any it cannot be asked.
type served map[string][]metav1.APIResource

var errDown = errors.New("it is down")

func (s served) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	resources, known := s[version]
	switch {
	case !known:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	case resources == nil:
		return nil, errDown
	default:
		return &metav1.APIResourceList{APIResources: resources}, nil
	}
}

// mapped is a mapper of what the API server has.
type mapped struct {
	meta.RESTMapper

	served served
}

func (m mapped) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	list, err := m.served.ServerResourcesForGroupVersion(kind.WithVersion(versions[0]).GroupVersion().String())
	if apierrors.IsNotFound(err) || err == nil && list.APIResources[0].Kind != kind.Kind {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{}, err
}

func TestFind(t *testing.T) {
	scheme := linestest.Scheme(t)
	records := []metav1.APIResource{{Name: "foreignclusters", Kind: "ForeignCluster"}}
	others := []metav1.APIResource{{Name: "others", Kind: "Other"}}
	for name, tc := range map[string]struct {
		reason string
		served served
		want   string
		err    error
		oldest string // Empty if it is the same error.
	}{
		"Zero": {"Liqo 0.9 has its own group.", served{"discovery.liqo.io/v1alpha1": records}, "0.9", nil, "0.9"},
		"One":  {"Liqo 1.x has its own group.", served{"core.liqo.io/v1beta1": records}, "1.x", nil, "1.x"},
		"None": {"Nobody has installed Liqo.", served{}, "", lines.ErrNone, ""},
		"Other": {
			"Somebody else has the groups.", served{"discovery.liqo.io/v1alpha1": others, "core.liqo.io/v1beta1": others}, "", lines.ErrNone, "",
		},
		"Both": {
			"One of them was here before, and its peers still are.",
			served{"discovery.liqo.io/v1alpha1": records, "core.liqo.io/v1beta1": records}, "", lines.ErrSeveral, "0.9",
		},
		"Unknown": {
			"Who does not answer is not taken for who has none.", served{"discovery.liqo.io/v1alpha1": records, "core.liqo.io/v1beta1": nil}, "",
			errDown, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(how string, got line.Line, err error, want string, wanted error) {
				if !errors.Is(err, wanted) || wanted == nil && (err != nil || got.Name() != want) {
					t.Errorf("%s\n%s() = %v, %v, want %s, %v", tc.reason, how, got, err, want, wanted)
				}
			}
			got, err := lines.Find(tc.served, scheme)
			check("Find", got, err, tc.want, tc.err)
			wanted := tc.err
			if tc.oldest != "" {
				wanted = nil
			}
			got, several, err := lines.FindOldest(tc.served, scheme)
			check("FindOldest", got, err, tc.oldest, wanted)
			if want := errors.Is(tc.err, lines.ErrSeveral); several != want {
				t.Errorf("%s\nFindOldest() finds several: %t, want %t", tc.reason, several, want)
			}
			got, err = lines.FindMapped(mapped{meta.NewDefaultRESTMapper(nil), tc.served})
			check("FindMapped", got, err, tc.want, tc.err)
		})
	}
}
