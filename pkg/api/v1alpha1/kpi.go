// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// NumberOf returns a number as the objects have it, with as many digits as it takes to read
// the same number again. What is not finite the API server refuses.
func NumberOf(value float64) Number { return Number(strconv.FormatFloat(value, 'g', -1, 64)) }

// Float returns the number, or an error of strconv.ParseFloat if the text is none.
func (n Number) Float() (float64, error) { return strconv.ParseFloat(string(n), 64) }

// KPIValueOf returns a KPI as the objects have it. Its times lose what is less than a second.
func KPIValueOf(k kpi.KPI) KPIValue {
	return KPIValue{
		Value: NumberOf(k.Value), Unit: k.Unit,
		MeasuredTime: metav1.NewTime(k.Measured.Truncate(time.Second)), ExpirationTime: metav1.NewTime(k.Expires.Truncate(time.Second)),
	}
}

// Decode returns the KPI that an object has; the zero KPI, which is unknown, if its value
// is no number.
func (v *KPIValue) Decode() kpi.KPI {
	value, err := v.Value.Float()
	if err != nil {
		return kpi.KPI{}
	}
	return kpi.KPI{Value: value, Unit: v.Unit, Measured: v.MeasuredTime.Time, Expires: v.ExpirationTime.Time}
}
