// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// line09 is Liqo 0.9: clusters have names, and a consumer peers by what the provider's liqoctl tells it to run.
type line09 struct{}

func (line09) install(l Liqo) []string {
	return []string{"--cluster-name", l.Name, "--sharing-percentage", "80", "--service-type", "NodePort"}
}

func (line09) values() map[string]any {
	type values = map[string]any
	return values{
		"metricAgent": values{"enable": false},
		"storage":     values{"enable": false},
		"common":      values{"nodeSelector": values{"lab/real": "true"}},
		// In-band peering is not used, and there is no image of its proxy; anything that runs will do.
		"proxy": values{"imageName": "lab.local/pause:1"},
	}
}

func (line09) peer(ctx context.Context, consumer, provider Liqo) error {
	out, err := provider.liqoctl(ctx, "liqo-peer-command", "generate", "peer-command", "--only-command")
	if err != nil {
		return fmt.Errorf("ask %s how to peer with it: %w", provider.Name, err)
	}
	args, err := parsePeerCommand(out)
	if err != nil {
		return fmt.Errorf("ask %s how to peer with it: %w", provider.Name, err)
	}
	_, err = consumer.liqoctl(ctx, "liqo-peer-"+provider.Name, args...)
	return err
}

func (line09) unpeer(ctx context.Context, consumer, provider Liqo) error {
	_, err := consumer.liqoctl(ctx, "liqo-unpeer-"+provider.Name, "unpeer", "out-of-band", provider.Name, "--skip-confirm")
	return err
}

// parsePeerCommand finds the arguments of the command that liqoctl tells to run.
func parsePeerCommand(output string) ([]string, error) {
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		// The first word is the program under the name that it was started with.
		if len(fields) > 1 && filepath.Base(fields[0]) == "liqoctl" && fields[1] == "peer" {
			return fields[1:], nil
		}
	}
	return nil, errors.New("liqoctl printed no peer command")
}
