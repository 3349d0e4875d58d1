// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/capacitorset/liqo-broker/test/lab/image"
)

// Init is the pid 1 of a node. It returns only if the node cannot be set up.
func Init(path string) error {
	proceed, report := os.NewFile(goFD, "go"), os.NewFile(reportFD, "report")
	if n, err := proceed.Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("wait for the start: %w", err)
	}
	proceed.Close()
	run, err := setUp(path)
	if err != nil {
		fmt.Fprintf(report, "%v\n", err)
		return err
	}
	if _, err := io.WriteString(report, ready); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	report.Close()
	run()
	return nil
}

// setUp makes everything of the node but its components, and returns the function that runs those.
func setUp(path string) (run func(), err error) {
	spec, err := loadSpec(path)
	if err != nil {
		return nil, err
	}
	if err := mountRoot(spec); err != nil {
		return nil, err
	}
	if err := configureNetwork(spec); err != nil {
		return nil, err
	}
	s := newSupervisor()
	go s.reap()
	for _, args := range spec.Setup {
		if err := s.run(args); err != nil {
			return nil, fmt.Errorf("run %v: %w", args, err)
		}
	}
	var registry net.Listener
	if len(spec.Stores) > 0 {
		if registry, err = net.Listen("tcp", RegistryAddress); err != nil {
			return nil, fmt.Errorf("listen for the registry: %w", err)
		}
	}
	var forward net.Listener
	if spec.Forward != "" {
		if forward, err = net.FileListener(os.NewFile(listenerFD, "listener")); err != nil {
			return nil, fmt.Errorf("use the listener: %w", err)
		}
	}
	return func() {
		if registry != nil {
			go serveImages(registry, spec)
		}
		if forward != nil {
			go forwardTo(forward, spec.Forward)
		}
		for _, c := range spec.Components {
			go s.keep(context.Background(), c)
		}
		select {}
	}, nil
}

func serveImages(l net.Listener, spec Spec) {
	var stores []image.Store
	for i := range spec.Stores {
		stores = append(stores, image.NewStore(storePath(i)))
	}
	err := http.Serve(l, image.NewRegistry(stores...)) //nolint:gosec // Reachable from the node only.
	fmt.Fprintf(os.Stderr, "the registry ended: %v\n", err)
}

// forwardTo copies every connection to the address, in both directions, until both sides are done.
func forwardTo(l net.Listener, address string) {
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "accept: %v\n", err)
			time.Sleep(restartDelay)
			continue
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", address)
			if err != nil {
				// The client sees a closed connection; the program it asks for is down.
				return
			}
			defer server.Close()
			done := make(chan struct{}, 2)
			pipe := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.(*net.TCPConn).CloseWrite()
				done <- struct{}{}
			}
			go pipe(server, client)
			go pipe(client, server)
			<-done
			<-done
		}()
	}
}
