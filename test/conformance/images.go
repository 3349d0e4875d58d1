// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab/image"
	"github.com/capacitorset/liqo-broker/test/lab/pki"
)

// registry is where the tests of Kubernetes 1.34 expect most of their images (test/utils/image/manifest.go@v1.34.4).
const registry = "registry.k8s.io/e2e-test-images/"

// apacheConfig makes Debian's apache2 serve the folder in which the tests look for its page.
const apacheConfig = `ServerName localhost
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
Listen 80
PidFile /tmp/httpd.pid
User #65534
Group #65534
StartServers 1
ErrorLog /dev/stderr
DocumentRoot /usr/local/apache2/htdocs
DirectoryIndex index.html
`

// nginxConfig makes Debian's nginx serve a page.
const nginxConfig = `daemon off;
worker_processes 1;
user root root;
pid /tmp/nginx.pid;
error_log /dev/stderr;
events {}
http {
  access_log off;
  client_body_temp_path /tmp/body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
  server { listen 80; root /usr/share/nginx/html; }
}
`

// page is what the tests look for on the first page of a web server.
const page = "<html><body><h1>It works!</h1></body></html>\n"

// accounts has the user and the group that a test of supplementary groups expects.
var accounts = image.Layer{
	{
		Path:    "etc/passwd",
		Content: "root:x:0:0:root:/root:/bin/sh\nuser-defined-in-image:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
	},
	{
		Path:    "etc/group",
		Content: "root:x:0:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\nnobody:x:65534:\n",
	},
}

// shell makes bash the shell: that of busybox 1.35 drops variables with names such as data-1, and prefers its own nc to
// that of the image.
var shell = image.Layer{{Path: "usr/bin/sh", Link: "bash"}, {Path: "usr/bin/ash", Link: "bash"}}

// images are those of the tests: Kubernetes' own program in its image, and others that do the same with Debian's programs.
func images(programs string) ([]image.Image, error) {
	base, err := image.Rootfs()
	if err != nil {
		return nil, err
	}
	network, err := image.Programs("dig", "getent", "nc.openbsd")
	if err != nil {
		return nil, err
	}
	network = append(
		network, image.Layer{{Path: "usr/bin/nc", Link: "nc.openbsd"}, {Path: "etc/nsswitch.conf", Content: "hosts: files dns\n"}}...,
	)
	apache, err := image.Programs("apache2", "/usr/lib/apache2/modules/mod_mpm_event.so",
		"/usr/lib/apache2/modules/mod_authz_core.so", "/usr/lib/apache2/modules/mod_dir.so")
	if err != nil {
		return nil, err
	}
	apache = append(apache, image.Layer{
		{Path: "usr/local/apache2/htdocs/index.html", Content: page},
		{Path: "etc/apache2/conformance.conf", Content: apacheConfig},
	}...)
	nginx, err := image.Programs("nginx")
	if err != nil {
		return nil, err
	}
	nginx = append(nginx, image.Layer{
		{Path: "usr/share/nginx/html/index.html", Content: page},
		{Path: "etc/nginx/nginx.conf", Content: nginxConfig},
		{Path: "var/lib/nginx", Mode: 0o777}, {Path: "var/log/nginx", Mode: 0o777},
	}...)
	small, err := busybox()
	if err != nil {
		return nil, err
	}
	pair, err := selfSigned()
	if err != nil {
		return nil, err
	}
	agnhost := image.Layer{
		{Path: "agnhost", Source: filepath.Join(programs, "agnhost")}, {Path: "agnhost-2", Link: "agnhost"}, {Path: "uploads", Mode: 0o777},
		{Path: "localhost.crt", Content: string(pair.Certificate)}, {Path: "localhost.key", Content: string(pair.Key)},
	}
	privileges := image.Layer{{Path: "usr/local/bin/nnp", Source: filepath.Join(programs, "nonewprivs"), Mode: 0o755 | fs.ModeSetuid}}
	pause := image.Single("registry.k8s.io/pause:3.10.1", filepath.Join(programs, "pause"), "/pause")
	all := []image.Image{
		{
			Tag: registry + "agnhost:2.56", Layers: []image.Layer{base, shell, network, agnhost, accounts}, Entrypoint: []string{"/agnhost"},
			Command: []string{"pause"},
		},
		{Tag: registry + "jessie-dnsutils:1.7", Layers: []image.Layer{base, shell, network, accounts}, Command: []string{"sleep", "infinity"}},
		{Tag: registry + "busybox:1.37.0-1", Layers: []image.Layer{small, shell, accounts}, Command: []string{"sh"}},
		{Tag: registry + "nonroot:1.4", Layers: []image.Layer{small, shell, accounts}, Command: []string{"sh"}, User: "1234"},
		{Tag: registry + "nonewprivs:1.3", Layers: []image.Layer{small, shell, accounts, privileges}, Command: []string{"nnp"}},
		pause,
	}
	for _, tag := range []string{"httpd:2.4.38-4", "httpd:2.4.39-4"} {
		all = append(all, image.Image{
			Tag: registry + tag, Layers: []image.Layer{base, shell, apache, accounts},
			Command: []string{"apache2", "-f", "/etc/apache2/conformance.conf", "-DFOREGROUND"},
		})
	}
	for _, tag := range []string{"nginx:1.14-4", "nginx:1.15-4"} {
		all = append(all, image.Image{Tag: registry + tag, Layers: []image.Layer{base, shell, nginx, accounts}, Command: []string{"nginx"}})
	}
	for _, pet := range []string{"kitten", "nautilus"} {
		data := image.Layer{{Path: "www/data.json", Content: fmt.Sprintf(`{ "image": "%s.jpg" }`, pet)}}
		all = append(all, image.Image{
			Tag: registry + pet + ":1.7", Layers: []image.Layer{small, shell, accounts, data},
			Command: []string{"httpd", "-f", "-p", "80", "-h", "/www"},
		})
	}
	return all, nil
}

// selfSigned returns a certificate for servers that nobody checks.
func selfSigned() (pki.Pair, error) {
	authority, err := pki.NewAuthority("conformance")
	if err != nil {
		return pki.Pair{}, err
	}
	return authority.Server(pkix.Name{CommonName: "localhost"}, "localhost")
}

// busybox is a layer with Debian's busybox under all of its names, and bash.
func busybox() (image.Layer, error) {
	layer, err := image.Programs("busybox", "bash")
	if err != nil {
		return nil, err
	}
	names, err := exec.Command("busybox", "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the names of busybox: %w", err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if name != "busybox" && name != "bash" {
			layer = append(layer, image.Entry{Path: "usr/bin/" + name, Link: "busybox"})
		}
	}
	return append(layer, image.Layer{
		{Path: "bin", Link: "usr/bin"}, {Path: "sbin", Link: "usr/bin"},
		{Path: "lib", Link: "usr/lib"}, {Path: "lib64", Link: "usr/lib64"}, {Path: "tmp", Mode: 0o777 | fs.ModeSticky},
		{Path: "root", Mode: 0o700},
	}...), nil
}

// load gives the images to the clusters that run pods of the tests.
func load(ctx context.Context, fed *federation.Federation, programs string, out io.Writer) error {
	all, err := images(programs)
	if err != nil {
		return err
	}
	archive, err := os.CreateTemp(programs, "images-*.tar")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(archive.Name()) }()
	defer func() { _ = archive.Close() }()
	if err := image.WriteArchive(archive, runtime.GOARCH, all...); err != nil {
		return err
	}
	for _, c := range slices.Concat(fed.Providers(), []*federation.Cluster{fed.Consumer}) {
		if _, err := archive.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := c.Lab.Load(ctx, archive, "")
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "cluster %s has the %d images of the tests\n", c.Name, len(names))
	}
	return nil
}
