// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command savedpage saves the page of a server as the plugin of kubectl does, for tests of the page in a browser: it asks the server at an
// address with a key.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http/httputil"
	"net/url"
	"os"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/ui"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/saving"
)

func main() {
	hide := flag.Bool("hide-names", false, "put pseudonyms in the place of names")
	flag.Parse()
	if err := run(flag.Arg(0), flag.Arg(1), flag.Arg(2), *hide); err != nil {
		fmt.Fprintln(os.Stderr, "savedpage:", err)
		os.Exit(1)
	}
}

func run(address, key, file string, hide bool) error {
	to, err := url.Parse(address)
	if err != nil {
		return err
	}
	server := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Set("Authorization", "Bearer "+key)
	}}
	page, err := ui.New()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), saving.Patience)
	defer cancel()
	_, err = saving.Save(ctx, file, page, server, hide, time.Now)
	return err
}
