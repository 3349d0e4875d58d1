// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/await"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// pairs says that the broker has what providers have, and consumers what the broker has: what goes between consumers and providers is
// relayed, and nobody reads anything from a consumer.
func (line1) pairs(f *joined) []pairing {
	var all []pairing
	for _, provider := range f.providers {
		all = append(all, pairing{f.broker, provider})
	}
	for _, consumer := range f.consumers {
		all = append(all, pairing{consumer, f.broker})
	}
	return all
}

// mayJoin returns an error unless the clusters are peered: with Liqo 1.x liqoctl does that, by credentials of both. It tells people by
// which commands.
func (line1) mayJoin(ctx context.Context, f *joined, j *Joining) error {
	if j.Direct {
		return requirement("with Liqo 1.x all traffic between consumers and providers goes through the broker, so that peerings between them " +
			"are of no use: leave out --direct")
	}
	if j.KeepTokens {
		return requirement("with Liqo 1.x clusters peer by credentials of both, and not by tokens: leave out --keep-tokens")
	}
	var commands []string
	for _, p := range f.pairings {
		peer, err := p.consumer.peerWith(ctx, p.provider.seen.Own.ID)
		if err != nil {
			return fmt.Errorf("look which peers %s has: %w", p.consumer.called(), err)
		}
		if !peer.Outgoing.Exists {
			commands = append(commands, p.peerCommand())
		}
	}
	if len(commands) == 0 {
		return nil
	}
	fmt.Fprintf(f.broker.run.out, "      With Liqo 1.x liqoctl peers clusters. --cpu, --memory and --pods of these commands say how much is "+
		"asked for, and --gw-server-service-type how gateways are reached:\n      %s\n", strings.Join(commands, "\n      "))
	return requirement("%d of %d peerings are missing: run the commands above, and join again", len(commands), len(f.pairings))
}

// joinSteps wait until the tunnels are up. No cluster was told a token.
func (line1) joinSteps(f *joined, _ bool) (before, after []step) {
	for _, p := range f.pairings {
		before = append(before, step{
			fmt.Sprintf("wait until %s reaches %s", p.consumer.called(), p.provider.called()), nothing, p.reached,
		})
	}
	return before, f.readySteps()
}

// reached returns an error that says what is missing until the consumer can authenticate at the provider, and their pods reach each other.
func (p pairing) reached(ctx context.Context) error {
	peer, err := p.consumer.peerWith(ctx, p.provider.seen.Own.ID)
	switch {
	case err != nil:
		return err
	case !peer.Outgoing.Exists:
		return await.Hopeless(requirement("%s does not peer with %s any more", p.consumer.called(), p.provider.called()))
	case !peer.Outgoing.Established:
		return fmt.Errorf("the peering is not established yet: Liqo has no credentials of %s at %s", p.consumer.called(), p.provider.called())
	}
	links, err := p.consumer.seen.line.Reader(p.consumer, p.consumer.seen.Own.ID).LinksWith(ctx, &peer)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(links, func(l liqo.Link) bool { return l.Connected && l.Peer == peer.ID }) {
		return fmt.Errorf("the tunnel is not up yet: do the gateways reach each other (UDP)? liqoctl info peer %s", peer.ID)
	}
	return nil
}

// peerCommand returns the command by which the consumer peers with the provider.
func (p pairing) peerCommand() string {
	words := []string{"liqoctl", "peer"}
	for _, side := range []struct {
		flags string
		way   Joiner
	}{{"--", p.consumer.way}, {"--remote-", p.provider.way}} {
		if side.way.Kubeconfig != "" {
			words = append(words, side.flags+"kubeconfig", quoted(side.way.Kubeconfig))
		}
		if side.way.Context != "" {
			words = append(words, side.flags+"context", quoted(side.way.Context))
		}
	}
	return strings.Join(words, " ")
}

// unquoted are words that a shell takes as they are.
var unquoted = regexp.MustCompile(`^[-A-Za-z0-9_./:@%+=,]+$`)

// quoted returns a word for a shell. What a terminal would obey is not shown.
func quoted(word string) string {
	if word = sheet.Plain(word); unquoted.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
