// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// childDSN tells the test binary to be a program that publishes until it is killed.
const childDSN = "STORE_TEST_CHILD"

// publishForEver publishes offers, and writes the ID of each when it is acknowledged.
func publishForEver(dsn string) error {
	ctx := context.Background()
	s, err := Open(ctx, dsn)
	if err != nil {
		return err
	}
	party := fmt.Sprintf("party-%d", os.Getpid())
	if _, err := s.PutParty(ctx, announced(party), 0); err != nil {
		return err
	}
	for n := 0; ; n++ {
		o := signed(party, fmt.Sprint(n), 1)
		if _, err := s.PutOffer(ctx, o, 1<<30); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, o.Party, o.ID)
	}
}

// TestNothingAcknowledgedIsLost kills a program that publishes, three times, without a warning.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	for name, fresh := range databases(t) {
		t.Run(name, func(t *testing.T) {
			dsn := fresh(t)
			var acknowledged [][2]string
			for range 3 {
				acknowledged = append(acknowledged, killAfter(t, dsn, 50)...)
			}
			s := opened(t, dsn)
			for _, key := range acknowledged {
				if _, err := offer(t.Context(), s.reader, key[0], key[1]); err != nil {
					t.Errorf("acknowledged: %v", err)
				}
			}
			taken := snapshot(t, s)
			if lost := int64(len(taken.Parties)+len(taken.Offers)) - taken.Revision; lost != 0 || len(acknowledged) < 150 {
				t.Errorf("%d acknowledged, %d offers at revision %d", len(acknowledged), len(taken.Offers), taken.Revision)
			}
			publish(t, s, signed(taken.Parties[0].ID, "after", 1))
		})
	}
}

// killAfter starts a program that publishes, kills it when it has published some offers, and returns all that it has said of.
func killAfter(t *testing.T, dsn string, offers int) [][2]string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDSN+"="+dsn)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said [][2]string
	for lines := bufio.NewScanner(out); lines.Scan(); { // After the kill, what is still in the pipe.
		var party, id string
		if n, _ := fmt.Sscan(lines.Text(), &party, &id); n == 2 {
			said = append(said, [2]string{party, id})
		}
		if len(said) == offers {
			child.Process.Kill() // SIGKILL
		}
	}
	child.Wait()
	return said
}
