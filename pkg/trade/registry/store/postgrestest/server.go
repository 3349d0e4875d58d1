// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package postgrestest runs a real PostgreSQL, that of Debian's package, for tests. It is in a temporary folder, listens on a socket there
// and on no port, and touches no server of the machine. It does not know what is stored.
package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Password is that of the only user. It needs percent-encoding in a URL, and must not be seen in an error.
const Password = "p@ss/w:rd%" //nolint:gosec // It is in no other place.

// Server is a PostgreSQL that runs.
type Server struct {
	folder    string
	programs  string
	account   *syscall.Credential // nil: that of the test
	databases atomic.Int64
}

// Start starts one, which ends with the test, and also if the test is killed.
func Start(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{programs: programs(tb), account: account(tb)}
	var err error
	if s.folder, err = os.MkdirTemp("", "postgres-"); err != nil { //nolint:usetesting // Nobody else may enter the parents of TempDir.
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(s.folder) })
	password := filepath.Join(s.folder, "password")
	if err := os.WriteFile(password, []byte(Password), 0o600); err != nil {
		tb.Fatal(err)
	}
	for _, name := range []string{s.folder, password} {
		if s.account == nil {
			break
		}
		if err := os.Chown(name, int(s.account.Uid), int(s.account.Gid)); err != nil {
			tb.Fatal(err)
		}
	}
	s.run(tb, "initdb", "--pgdata="+s.data(), "--username=registry", "--pwfile="+password, "--auth=scram-sha-256", "--encoding=UTF8",
		"--locale=C.UTF-8")

	// The shell stops the server, and removes its folder, when the shell's input ends, which is when the test ends, however it does.
	var log bytes.Buffer
	process := s.command(context.WithoutCancel(tb.Context()), "/bin/sh", "-c", `trap : INT TERM; "$@" </dev/null & server=$!; read -r line; kill -INT $server; wait $server; cd /; rm -rf "$0"`, s.folder,
		filepath.Join(s.programs, "postgres"), "-D", s.data(), "-k", s.folder, "-c", "listen_addresses=", "-c", "max_connections=60")
	process.Stdout, process.Stderr = &log, &log
	input, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		input.Close()
		if err := process.Wait(); err != nil {
			tb.Logf("PostgreSQL ended: %v", err)
		}
		if tb.Failed() {
			tb.Logf("PostgreSQL says:\n%s", log.String())
		}
	})
	for deadline := time.Now().Add(time.Minute); !s.ready(tb.Context()); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("PostgreSQL does not start")
		}
	}
	return s
}

// programs finds the folder of the newest PostgreSQL.
func programs(tb testing.TB) string {
	tb.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		tb.Fatal("there is no PostgreSQL in /usr/lib/postgresql: make deps installs it")
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })
	return filepath.Dir(newest)
}

// major is the version in the name of a program.
func major(name string) int {
	version, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(name))))
	if err != nil {
		return 0
	}
	return version
}

// account is who runs the server: PostgreSQL refuses to run as root.
func account(tb testing.TB) *syscall.Credential {
	tb.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	who, err := user.Lookup("postgres") // Debian's package has made it.
	if err != nil {
		tb.Fatal(err)
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		tb.Fatal(err)
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		tb.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

// command is a program that runs as the server's account.
func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = s.folder
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	return command
}

// run runs a program of PostgreSQL.
func (s *Server) run(tb testing.TB, name string, args ...string) {
	tb.Helper()
	command := s.command(tb.Context(), filepath.Join(s.programs, name), args...)
	command.Env = append(os.Environ(), "PGPASSWORD="+Password)
	if said, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", name, err, said)
	}
}

// ready reports whether the server answers.
func (s *Server) ready(ctx context.Context) bool {
	return s.command(ctx, filepath.Join(s.programs, "pg_isready"), "--quiet", "--host="+s.folder, "--username=registry").Run() == nil
}

// Database creates an empty database, and returns its DSN.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("registry%d", s.databases.Add(1))
	s.run(tb, "createdb", "--host="+s.folder, "--username=registry", name)
	dsn := url.URL{Scheme: "postgres", User: url.UserPassword("registry", Password), Path: "/" + name,
		RawQuery: url.Values{"host": {s.folder}}.Encode()}
	return dsn.String()
}

// DatabaseAhead creates an empty database whose clock is ahead of that of the machine, and returns its DSN.
func (s *Server) DatabaseAhead(tb testing.TB, by time.Duration) string {
	tb.Helper()
	dsn := s.Database(tb)
	address, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	name := strings.TrimPrefix(address.Path, "/")
	s.run(tb, "psql", "--host="+s.folder, "--username=registry", "--dbname="+name, "--quiet", "--set=ON_ERROR_STOP=1", "--command="+fmt.Sprintf(`
		CREATE SCHEMA ahead;
		CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
			$$ SELECT pg_catalog.clock_timestamp() + make_interval(secs => %g) $$;
		ALTER DATABASE %s SET search_path TO public, ahead, pg_catalog`, by.Seconds(), name))
	return dsn
}
