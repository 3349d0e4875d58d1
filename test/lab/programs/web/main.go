// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command web is the server that the lab's pods run: it tells who answers, and
// sends as many bytes as one asks for. By UDP, it answers each datagram with its
// host name.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// answer is the reply to every request but those for bytes.
type answer struct {
	// Host is the host name, which is the name of the pod.
	Host string `json:"host"`
	// Node is the value of the environment variable NODE.
	Node string `json:"node"`
	// Addresses are the server's own IPv4 addresses.
	Addresses []string `json:"addresses"`
	// Client is the address that the request came from, and Asked the host that it asked for.
	Client string `json:"client"`
	Asked  string `json:"asked"`
}

func main() {
	address := ":8080"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	go func() { fmt.Fprintln(os.Stderr, identifyByUDP(address)) }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", identify)
	mux.HandleFunc("GET /bytes/{count}", sendBytes)
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

func identify(w http.ResponseWriter, r *http.Request) {
	host, err := os.Hostname()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	addresses, err := ownAddresses()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	reply := answer{Host: host, Node: os.Getenv("NODE"), Addresses: addresses, Client: client, Asked: r.Host}
	if err := json.NewEncoder(w).Encode(reply); err != nil {
		fmt.Fprintf(os.Stderr, "answer %s: %v\n", r.RemoteAddr, err)
	}
}

// identifyByUDP answers each datagram that arrives at an address. It returns when it can listen no more.
func identifyByUDP(address string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	for {
		_, from, err := conn.ReadFrom(make([]byte, 1))
		if err != nil {
			return err
		}
		if _, err := conn.WriteTo([]byte(host), from); err != nil {
			fmt.Fprintf(os.Stderr, "answer %s: %v\n", from, err)
		}
	}
}

func ownAddresses() ([]string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	own := []string{}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			own = append(own, n.IP.String())
		}
	}
	return own, nil
}

// sendBytes sends zeros, as fast as they are read.
func sendBytes(w http.ResponseWriter, r *http.Request) {
	count, err := strconv.ParseInt(r.PathValue("count"), 10, 64)
	if err != nil || count < 0 {
		http.Error(w, "ask for /bytes/N with a whole number N", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(count, 10))
	_, _ = io.CopyN(w, zeros{}, count)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
