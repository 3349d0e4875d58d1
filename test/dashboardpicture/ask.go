// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// points is how many values of a series are asked for.
const points = 120

// period is the time that is shown.
type period struct{ from, to time.Time }

// sample is a value and its time in seconds since 1970.
type sample struct{ at, value float64 }

// series is one line of a panel.
type series struct {
	name    string
	samples []sample
}

var braces = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// ask returns the lines of a query, named as a legend says.
func ask(ctx context.Context, prometheus, query, legend string, over period) ([]series, error) {
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	step := over.to.Sub(over.from).Seconds() / points
	parameters := url.Values{
		"query": {query}, "start": {seconds(over.from)}, "end": {seconds(over.to)}, "step": {strconv.FormatFloat(step, 'f', 3, 64)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, prometheus+"/api/v1/query_range?"+parameters.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Error != "" { //nolint:musttag // Names differ in case only.
		return nil, fmt.Errorf("ask %s for %s: %s (%w)", prometheus, query, answer.Error, orStatus(err, response.Status))
	}
	var all []series
	for _, result := range answer.Data.Result {
		line := series{name: braces.ReplaceAllStringFunc(legend, func(label string) string {
			return result.Metric[braces.FindStringSubmatch(label)[1]]
		})}
		for _, pair := range result.Values {
			at, isNumber := pair[0].(float64)
			text, isText := pair[1].(string)
			if value, err := strconv.ParseFloat(text, 64); err == nil && isNumber && isText && value == value && value < 1e300 {
				// Neither NaN nor infinite.
				line.samples = append(line.samples, sample{at, value})
			}
		}
		if len(line.samples) > 0 {
			all = append(all, line)
		}
	}
	return all, nil
}

func orStatus(err error, status string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("it answers %s", status)
}
