// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package nftables

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// podAddresses are those of the pod whose port is guarded.
var podAddresses = []string{"10.0.0.1", "fd00::1"}

const (
	guarded = 6000
	other   = 6001
	closed  = 1

	// patience is how long a connection and an answer may take between two namespaces of one machine.
	patience = time.Second
)

// TestInstall connects to a pod from three others, as the kernel routes and filters it.
func TestInstall(t *testing.T) {
	pod := newNamespace(t)
	clients := map[string]namespace{}
	for name, addresses := range map[string][]string{"a": {"10.1.0.1", "fd00::a"}, "b": {"10.1.1.1"}, "c": {"10.2.0.1"}} {
		clients[name] = newNamespace(t)
		connect(t, pod, clients[name], addresses...)
	}
	for _, port := range []int{guarded, other} {
		serve(t, pod, port)
	}
	steps := []struct {
		reason  string
		sources []string
		want    []string
	}{
		{"nobody but the pod", nil, nil},
		{"an address", []string{"10.1.0.1/32"}, []string{"a"}},
		{"the same again", []string{"10.1.0.1/32"}, []string{"a"}},
		{"another address, which replaces it", []string{"10.2.0.1/32"}, []string{"c"}},
		{"neighbours", []string{"10.1.0.1/32", "10.1.0.0/32", "10.1.0.2/32"}, []string{"a"}},
		{"the same twice, and prefixes in one another", []string{"10.1.0.0/16", "10.1.0.1/32", "10.1.0.1/32", "10.1.0.0/24"}, []string{"a", "b"}},
		{"a prefix with bits of a host", []string{"10.1.1.7/24"}, []string{"b"}},
		{"the end of all addresses", []string{"255.255.255.255/32", "10.2.0.0/15"}, []string{"c"}},
		{"all of IPv4", []string{"0.0.0.0/0"}, []string{"a", "b", "c"}},
		{"nobody again", nil, nil},
	}
	ways := []struct {
		name, address string
		from          namespace
	}{
		{"pod by loopback", "127.0.0.1", pod}, {"pod by its address", "10.0.0.1", pod}, {"pod by IPv6", "::1", pod},
		{"a", "10.0.0.1", clients["a"]}, {"b", "10.0.0.1", clients["b"]}, {"c", "10.0.0.1", clients["c"]},
		{"a by IPv6", "fd00::1", clients["a"]},
	}
	who := func(port int) (open []string) {
		t.Helper()
		got := make([]bool, len(ways))
		var tries sync.WaitGroup
		for i, way := range ways {
			tries.Go(func() { got[i] = reaches(t, way.from, way.address, port) })
		}
		tries.Wait()
		for i, way := range ways {
			if got[i] {
				open = append(open, way.name)
			}
		}
		return open
	}
	itself := []string{"pod by loopback", "pod by its address", "pod by IPv6"}
	everybody := append(slices.Clone(itself), "a", "b", "c", "a by IPv6")
	if diff := cmp.Diff(everybody, who(guarded)); diff != "" {
		t.Fatalf("without a rule (-want +got):\n%s", diff)
	}

	for _, step := range steps {
		rule := Rule{Port: guarded, Sources: prefixes(step.sources...)}
		if err := pod.do(func() error { return Install(rule) }); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if diff := cmp.Diff(slices.Concat(itself, step.want), who(guarded)); diff != "" {
			t.Errorf("%s: who reaches the port (-want +got):\n%s", step.reason, diff)
		}
	}
	if diff := cmp.Diff(everybody, who(other)); diff != "" {
		t.Errorf("who reaches another port (-want +got):\n%s", diff)
	}
}

// TestInstallEndsConnections checks that an open connection does not outlive the right to it.
func TestInstallEndsConnections(t *testing.T) {
	pod, client := newNamespace(t), newNamespace(t)
	connect(t, pod, client, "10.1.0.1")
	serve(t, pod, guarded)
	install := func(sources ...string) {
		t.Helper()
		if err := pod.do(func() error { return Install(Rule{Port: guarded, Sources: prefixes(sources...)}) }); err != nil {
			t.Fatal(err)
		}
	}
	install("10.1.0.1/32")
	connection, err := dial(t.Context(), client, "10.0.0.1", guarded, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := echo(connection); err != nil {
		t.Fatalf("an allowed connection: %v", err)
	}
	install("10.1.0.0/16")
	if err := echo(connection); err != nil {
		t.Errorf("a connection that the next rule allows as well: %v", err)
	}
	install()
	if err := echo(connection); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that is no longer allowed: got %v, want no answer", err)
	}
}

// TestLifetime lets a rule end, as it does when nobody is there who installs it again.
func TestLifetime(t *testing.T) {
	const lifetime = 6 * time.Second
	pod, client, neighbor := newNamespace(t), newNamespace(t), newNamespace(t)
	connect(t, pod, client, "10.1.0.1")
	connect(t, pod, neighbor, "10.1.0.2")
	serve(t, pod, guarded)
	install := func() {
		t.Helper()
		rule := Rule{Port: guarded, Sources: prefixes("10.1.0.1/32", "10.8.0.0/16"), Lifetime: lifetime}
		if err := pod.do(func() error { return Install(rule) }); err != nil {
			t.Fatal(err)
		}
	}
	check := func(reason string, want bool) {
		t.Helper()
		if got := reaches(t, client, "10.0.0.1", guarded); got != want {
			t.Errorf("%s: the source reaches the port: %t, want %t", reason, got, want)
		}
		if reaches(t, neighbor, "10.0.0.1", guarded) {
			t.Errorf("%s: another address reaches the port", reason)
		}
	}
	install()
	check("the rule is new", true)
	time.Sleep(lifetime / 2)
	install()
	time.Sleep(lifetime / 2) // With what went on in between, more than the lifetime has passed since the first time.
	check("it was installed again", true)
	time.Sleep(lifetime)
	check("it has ended", false)
	install()
	check("the guard is back", true)
}

// TestInstallLeavesOthersAlone checks that another program's table stays as it is.
func TestInstallLeavesOthersAlone(t *testing.T) {
	pod := newNamespace(t)
	tables := func() (names []string, err error) {
		connection, err := nftables.New()
		if err != nil {
			return nil, err
		}
		all, err := connection.ListTables()
		for _, table := range all {
			names = append(names, table.Name)
		}
		return names, err
	}
	err := pod.do(func() error {
		connection, err := nftables.New()
		if err != nil {
			return err
		}
		table := connection.AddTable(&nftables.Table{Name: "theirs", Family: nftables.TableFamilyINet})
		connection.AddChain(&nftables.Chain{Name: "theirs", Table: table})
		if err := connection.Flush(); err != nil {
			return err
		}
		for range 2 {
			if err := Install(Rule{Port: guarded}); err != nil {
				return err
			}
		}
		names, err := tables()
		if diff := cmp.Diff([]string{"theirs", tableName}, names); diff != "" {
			t.Errorf("tables (-want +got):\n%s", diff)
		}
		chains, listErr := connection.ListChains()
		if len(chains) != 2 {
			t.Errorf("got %d chains, want theirs and ours", len(chains))
		}
		return errors.Join(err, listErr)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestInstallMany checks that a broker with thousands of virtual kubelets fits into the messages of netlink.
func TestInstallMany(t *testing.T) {
	pod, client := newNamespace(t), newNamespace(t)
	connect(t, pod, client, "10.1.0.1")
	serve(t, pod, guarded)
	var sources []netip.Prefix
	for i := range 5000 {
		var address [4]byte
		binary.BigEndian.PutUint32(address[:], 10<<24|3<<16|uint32(2*i))
		sources = append(sources, netip.PrefixFrom(netip.AddrFrom4(address), 32))
	}
	for _, allowed := range []bool{false, true} {
		if allowed {
			sources = append(sources, netip.MustParsePrefix("10.1.0.1/32"))
		}
		if err := pod.do(func() error { return Install(Rule{Port: guarded, Sources: sources}) }); err != nil {
			t.Fatal(err)
		}
		if got := reaches(t, client, "10.0.0.1", guarded); got != allowed {
			t.Errorf("reached with %d sources: %v, want %v", len(sources), got, allowed)
		}
	}
}

func TestInstallRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		source netip.Prefix
	}{
		"IPv6":  {"Liqo's IPAM has no IPv6", netip.MustParsePrefix("fd00::/64")},
		"Empty": {"no prefix at all", netip.Prefix{}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Install(Rule{Port: guarded, Sources: []netip.Prefix{tc.source}}); err == nil ||
				!strings.Contains(err.Error(), "not an IPv4 prefix") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// TestInstallWithoutCapability checks that a container that may not filter says what it lacks.
func TestInstallWithoutCapability(t *testing.T) {
	pod := newNamespace(t)
	err := pod.do(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return fmt.Errorf("drop all capabilities of the thread: %w", err)
		}
		if err := Install(Rule{Port: guarded}); !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "NET_ADMIN") {
			t.Errorf("got %v, want an error about NET_ADMIN", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// namespace is a network namespace of a test.
type namespace struct{ file *os.File }

func newNamespace(t *testing.T) namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	var ns namespace
	err := onOwnThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		ns.file, err = os.Open("/proc/thread-self/ns/net")
		return errors.Join(err, up("lo"))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.file.Close() })
	return ns
}

// do calls a function in the namespace.
func (n namespace) do(f func() error) error {
	return onOwnThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// onOwnThread calls a function on a thread that ends with it, so that what the function does to its thread stays there.
func onOwnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// connect links a client to the pod. The client gets an IPv4 address and perhaps an IPv6 address.
func connect(t *testing.T, pod, client namespace, addresses ...string) {
	t.Helper()
	link := fmt.Sprintf("veth%d", client.file.Fd())
	err := errors.Join(
		pod.do(func() error {
			return netlink.LinkAdd(&netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: link}, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(client.file.Fd())),
			})
		}),
		pod.do(func() error { return configure(link, podAddresses, addresses) }),
		client.do(func() error { return configure("eth0", addresses, podAddresses) }),
	)
	if err != nil {
		t.Fatal(err)
	}
	// The first packet over a link may be lost, and the kernel repeats it after a second. A closed port answers when all is well.
	for i := range addresses {
		if _, err := dial(t.Context(), client, podAddresses[i], closed, 10*time.Second); !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatalf("a closed port of the pod: got %v", err)
		}
	}
}

// configure gives an interface its own addresses, and routes those of others to it.
func configure(name string, own, others []string) error {
	err := up(name)
	link, findErr := netlink.LinkByName(name)
	if err := errors.Join(err, findErr); err != nil {
		return err
	}
	for _, address := range own {
		// Without the detection of duplicates, which takes a second.
		err = errors.Join(err, netlink.AddrAdd(link, &netlink.Addr{IPNet: host(address), Flags: unix.IFA_F_NODAD}))
	}
	for _, address := range others {
		err = errors.Join(err, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: host(address), Scope: netlink.SCOPE_LINK}))
	}
	return err
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find interface %s: %w", name, err)
	}
	return netlink.LinkSetUp(link)
}

func host(address string) *net.IPNet {
	ip := netip.MustParseAddr(address)
	return &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}
}

// serve echoes on a port of a namespace, to anybody.
func serve(t *testing.T, ns namespace, port int) {
	t.Helper()
	var listener net.Listener
	err := ns.do(func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf(":%d", port))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				// The end of a connection that is filtered out does not arrive.
				defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
				defer connection.Close()
				_, _ = io.Copy(connection, connection)
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		connections.Wait()
	})
}

func dial(ctx context.Context, ns namespace, address string, port int, timeout time.Duration) (connection net.Conn, err error) {
	err = ns.do(func() (err error) {
		dialer := net.Dialer{Timeout: timeout}
		connection, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		return err
	})
	return connection, err
}

// reaches reports whether a byte comes back from a port. Anything but silence is an error of the test.
func reaches(t *testing.T, ns namespace, address string, port int) bool {
	t.Helper()
	connection, err := dial(t.Context(), ns, address, port, patience)
	var failure net.Error
	if errors.As(err, &failure) && failure.Timeout() {
		return false
	}
	if err != nil {
		t.Error(err)
		return false
	}
	defer connection.Close()
	if err := echo(connection); err != nil {
		t.Error(err)
	}
	return true
}

func echo(connection net.Conn) error {
	if err := connection.SetDeadline(time.Now().Add(10 * patience)); err != nil {
		return err
	}
	if _, err := connection.Write([]byte("?")); err != nil {
		return err
	}
	_, err := io.ReadFull(connection, make([]byte, 1))
	return err
}
