// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes of built programs what people get: images, archives of the plugin, the chart, manifests, and papers about all of
// them. The same commit and the same Go give the same bytes, on any machine. It does not know how programs are built: the Makefile does.
//
//	image        packs one program into an image for this machine, for the lab and for docker load
//	pack         writes a release into a folder
//	charts       packs the Helm charts alone
//	publish      pushes the images and the charts of a release
//	sign         signs a release, and its images and charts in a registry
//	verify       checks these signatures
//	set-version  writes another version into the manifests
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	commands := map[string]func(context.Context, *flag.FlagSet, []string, io.Writer) error{
		"image": runImage, "pack": runPack, "charts": runCharts, "names": runNames, "publish": runPublish,
		"sign": runSign, "verify": runVerify, "set-version": runSetVersion,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("what to do is one of: %s", strings.Join(sortedKeys(commands), ", "))
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	flags.SetOutput(out)
	return commands[args[0]](ctx, flags, args[1:], out)
}

// sourceFlags adds the flags that say what is packed, and returns how to read them.
func sourceFlags(flags *flag.FlagSet) func() (source, error) {
	var s source
	flags.StringVar(&s.Root, "root", ".", "folder of the repository")
	flags.StringVar(&s.Version, "version", "", "version of the programs")
	flags.StringVar(&s.Revision, "revision", "", "commit that they were built from")
	epoch := flags.String("epoch", "", "time of the commit, in seconds since 1970 (default $SOURCE_DATE_EPOCH)")
	return func() (source, error) {
		if *epoch == "" {
			*epoch = os.Getenv("SOURCE_DATE_EPOCH")
		}
		seconds, err := strconv.ParseInt(*epoch, 10, 64)
		if err != nil {
			return source{}, fmt.Errorf("-epoch %q is not a number of seconds", *epoch)
		}
		s.Time = time.Unix(seconds, 0).UTC()
		return s, nil
	}
}

// runImage packs one program for the machine's own architecture.
func runImage(ctx context.Context, flags *flag.FlagSet, args []string, _ io.Writer) error {
	read := sourceFlags(flags)
	named := flags.String("name", "", "name and tag of the image")
	path := flags.String("binary", "", "the program")
	output := flags.String("o", "", "the docker-archive to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := read()
	if err != nil {
		return err
	}
	of, err := programOf(*path)
	if err != nil {
		return err
	}
	licences, err := sources(ctx)
	if err != nil {
		return err
	}
	p := packer{Source: s, Licences: licences}
	built, err := readBinary(*path, platform{"linux", runtime.GOARCH}, of.Patched, s.Revision)
	if err != nil {
		return err
	}
	_, documents, err := p.documents(built)
	if err != nil {
		return err
	}
	image, err := of.image(s, runtime.GOARCH, built.Data, documents)
	if err != nil {
		return err
	}
	file, err := os.Create(*output)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := dockerArchive(file, image, *named); err != nil {
		return fmt.Errorf("write %s: %w", *output, err)
	}
	return file.Close()
}

// programOf returns the program with the name of a file.
func programOf(path string) (program, error) {
	for _, p := range programs() {
		if p.Binary == filepath.Base(path) {
			return p, nil
		}
	}
	return program{}, fmt.Errorf("%q is no program that has an image", path)
}

func runPack(ctx context.Context, flags *flag.FlagSet, args []string, out io.Writer) error {
	read := sourceFlags(flags)
	p := packer{Progress: out}
	flags.StringVar(&p.Binaries, "binaries", "", "folder with a folder of programs for each platform")
	images := flags.String("images", "", "platforms of the images, as linux/amd64")
	plugins := flags.String("plugins", "", "platforms of the plugin")
	folder := flags.String("o", "", "empty folder to write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if p.Source, err = read(); err != nil {
		return err
	}
	if p.Images, err = parsePlatforms(*images); err != nil {
		return fmt.Errorf("-images: %w", err)
	}
	if p.Plugins, err = parsePlatforms(*plugins); err != nil {
		return fmt.Errorf("-plugins: %w", err)
	}
	if p.Licences, err = sources(ctx); err != nil {
		return err
	}
	if *folder == "" {
		return errors.New("-o is missing")
	}
	return p.pack(*folder)
}

// runCharts packs the charts as they are in the repository, for tests that read them with Helm.
func runCharts(_ context.Context, flags *flag.FlagSet, args []string, _ io.Writer) error {
	read := sourceFlags(flags)
	folder := flags.String("o", "", "the folder to write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := read()
	if err != nil {
		return err
	}
	if s.Version, err = s.manifestVersion(); err != nil {
		return err
	}
	packed, err := packageCharts(s)
	if err != nil {
		return err
	}
	for _, chart := range packed {
		if err := os.WriteFile(filepath.Join(*folder, chart.Name), chart.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func runPublish(ctx context.Context, flags *flag.FlagSet, args []string, out io.Writer) error {
	folder := flags.String("folder", "dist", "folder of the release")
	to := flags.String("registry", "", "where to push: what stands before the last slash of names, as ghcr.io/someone")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *to == "" {
		return errors.New("-registry is missing")
	}
	return publish(ctx, *folder, *to, out)
}

// runSign signs what runPublish has pushed.
func runSign(ctx context.Context, flags *flag.FlagSet, args []string, out io.Writer) error {
	folder := flags.String("folder", "dist", "folder of the release")
	to := flags.String("registry", "", "where its images were pushed: what stands before the last slash of names, as ghcr.io/someone")
	file := flags.String("key", "", "PEM file with a private key of ECDSA, without a password")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *to == "" || *file == "" {
		return errors.New("-registry or -key is missing")
	}
	key, err := readKey(*file)
	if err != nil {
		return err
	}
	return sign(ctx, *folder, *to, key, out)
}

// runVerify checks what runSign has signed.
func runVerify(ctx context.Context, flags *flag.FlagSet, args []string, out io.Writer) error {
	to := flags.String("registry", "", "where the images are: what stands before the last slash of names, as ghcr.io/someone")
	version := flags.String("version", "", "the version")
	file := flags.String("key", "", "PEM file with the public key of who has released it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *to == "" || *file == "" || !semantic.MatchString(*version) {
		return errors.New("-registry, -key or a -version of the form v1.2.3 is missing")
	}
	key, err := readPublicKey(*file)
	if err != nil {
		return err
	}
	return verify(ctx, *to, *version, key, out)
}

// runNames prints under which names the images are when they have been published.
func runNames(_ context.Context, flags *flag.FlagSet, args []string, out io.Writer) error {
	to := flags.String("registry", "", "where they are: what stands before the last slash of names, as ghcr.io/someone")
	version := flags.String("version", "", "the version")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, p := range programs() {
		fmt.Fprintln(out, p.published(*to, *version))
	}
	return nil
}

func runSetVersion(_ context.Context, flags *flag.FlagSet, args []string, out io.Writer) error {
	root := flags.String("root", ".", "folder of the repository")
	version := flags.String("version", "", "the new version")
	if err := flags.Parse(args); err != nil {
		return err
	}
	changed, err := setVersion(*root, *version)
	for _, name := range changed {
		fmt.Fprintln(out, name)
	}
	return err
}

// sources asks Go where it has sources, and with them their licences.
func sources(ctx context.Context) (licenceReader, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		return licenceReader{}, fmt.Errorf("ask go where its modules are: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) != 2 {
		return licenceReader{}, fmt.Errorf("ask go where its modules are: it says %q", output)
	}
	return licenceReader{Cache: lines[0], Root: lines[1]}, nil
}
