// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/test/lab/node"
	"github.com/capacitorset/liqo-broker/test/lab/process"
)

// Closed is the answer of a port that does not speak to who asks: it refuses the connection, lets it wait, or ends it.
const Closed = "closed"

// dialPatience is how long a connection may take before its port counts as closed. The kernel repeats a lost packet after one
// second, and again two seconds later.
const dialPatience = 3500 * time.Millisecond

// Dial connects from the network of a pod that runs on the cluster's node.
func (c *Cluster) Dial(ctx context.Context, from *corev1.Pod, address string) (net.Conn, error) {
	id, err := c.processOf(from)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	return dialIn(id)(ctx, "tcp", address)
}

// Reaches reports whether a TCP port is open to a pod that runs on the cluster's node, or closed: without an answer, or refused.
func (c *Cluster) Reaches(ctx context.Context, from *corev1.Pod, address string) (bool, error) {
	connection, err := c.Dial(ctx, from, address)
	var failure net.Error
	switch {
	case err == nil:
		return true, connection.Close()
	case errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &failure) && failure.Timeout():
		return false, nil
	default:
		return false, err
	}
}

// Ask returns the status with which a URL answers a GET without an identity from the network of a pod that runs on the cluster's node, or
// Closed.
func (c *Cluster) Ask(ctx context.Context, from *corev1.Pod, url string) (string, error) {
	if _, err := c.processOf(from); err != nil {
		return "", err
	}
	asker := &http.Client{Timeout: 2 * dialPatience, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // Nothing is sent or believed.
		DialContext:       func(ctx context.Context, _, address string) (net.Conn, error) { return c.Dial(ctx, from, address) },
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := asker.Do(request)
	if err != nil {
		return Closed, nil // That is the answer.
	}
	defer func() { _ = response.Body.Close() }()
	return strconv.Itoa(response.StatusCode), nil
}

// Listening returns the TCP ports on which the containers of a pod that runs on the cluster's node listen for others than themselves, in
// order.
func (c *Cluster) Listening(pod *corev1.Pod) ([]int, error) {
	id, err := c.processOf(pod)
	if err != nil {
		return nil, err
	}
	return node.Listening(id)
}

// processOf returns the first process of a pod.
func (c *Cluster) processOf(pod *corev1.Pod) (process.ID, error) {
	if len(pod.Status.ContainerStatuses) == 0 {
		return process.ID{}, fmt.Errorf("pod %s/%s of %s has no container", pod.Namespace, pod.Name, c.Name)
	}
	container, err := c.Lab.Container(pod, pod.Status.ContainerStatuses[0].Name)
	if err != nil {
		return process.ID{}, err
	}
	id, err := container.Process()
	if err != nil {
		return process.ID{}, fmt.Errorf("pod %s/%s of %s: %w", pod.Namespace, pod.Name, c.Name, err)
	}
	return id, nil
}

// Seen returns the address under which the cluster sees a pod of another one, with which it has a tunnel.
func (c *Cluster) Seen(ctx context.Context, owner *Cluster, podIP string) (string, error) {
	address, err := netip.ParseAddr(podIP)
	if err != nil {
		return "", fmt.Errorf("a pod of %s: %w", owner.Name, err)
	}
	link, err := c.Link(ctx, owner)
	switch {
	case err != nil:
		return "", err
	case link == nil:
		return "", fmt.Errorf("%s has no tunnel to %s", c.Name, owner.Name)
	}
	seen, err := link.Path.Pods.ToObserver(address)
	if err != nil {
		return "", fmt.Errorf("%s as %s sees it: %w", podIP, c.Name, err)
	}
	return seen.String(), nil
}
