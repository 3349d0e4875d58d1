// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/lab/node"
)

// Report writes what a person wants to see of a federation: its clusters and peerings, what is offered, and where the pods of a
// namespace of the consumer run.
func (f *Federation) Report(ctx context.Context, out io.Writer, namespace string) error {
	for _, section := range []struct {
		title string
		write func(context.Context, io.Writer) error
	}{
		{"Clusters", f.reportClusters},
		{"Peerings", f.reportPeerings},
		{"What is offered", f.reportOffers},
		{"Where the pods of namespace " + namespace + " run, and how the consumer reaches them", func(ctx context.Context, out io.Writer) error {
			return f.reportCopies(ctx, out, namespace)
		}},
		{"What the broker's parts need", f.reportMemory},
	} {
		fmt.Fprintf(out, "\n%s\n\n", section.title)
		table := tabwriter.NewWriter(out, 2, 0, 3, ' ', 0)
		if err := section.write(ctx, table); err != nil {
			return fmt.Errorf("report %s: %w", strings.ToLower(section.title), err)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (f *Federation) reportClusters(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "  CLUSTER\tKUBERNETES\tLIQO CLUSTER ID\tNODES")
	for _, c := range f.Clusters() {
		var nodes corev1.NodeList
		if err := c.List(ctx, &nodes); err != nil {
			return err
		}
		var version string
		var names []string
		for i := range nodes.Items {
			each := &nodes.Items[i]
			name := each.Name
			if liqo.NodeCluster(each) == "" {
				version = each.Status.NodeInfo.KubeletVersion
			} else {
				name += " (virtual)"
			}
			if !liqo.NodeReady(each) {
				name += " (not ready)"
			}
			names = append(names, name)
		}
		fmt.Fprintf(out, "  %s\t%s\t%s\t%s\n", c.Name, version, c.ID, strings.Join(names, ", "))
	}
	return nil
}

func (f *Federation) reportPeerings(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "  CONSUMER\tPROVIDER\tSTATE")
	for _, c := range f.Clusters() {
		peers, err := c.Liqo().Peers(ctx)
		if err != nil {
			return err
		}
		for i := range peers {
			if !peers[i].Outgoing.Exists {
				continue
			}
			state := "pending"
			if peers[i].Outgoing.Established {
				state = "established"
			}
			fmt.Fprintf(out, "  %s\t%s\t%s\n", c.Name, peers[i].Name, state)
		}
	}
	return nil
}

func (f *Federation) reportOffers(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "  FROM\tTO\tCPU\tMEMORY\tPODS\tAS")
	row := func(from, to string, offered corev1.ResourceList, as string) {
		fmt.Fprintf(out, "  %s\t%s\t%s\t%s\t%s\t%s\n", from, to, offered.Cpu(), mebibytes(offered), offered.Pods(), as)
	}
	var providers v1alpha1.ProviderList
	if err := f.Broker.List(ctx, &providers); err != nil {
		return err
	}
	for i := range providers.Items {
		provider := &providers.Items[i]
		if !slices.ContainsFunc(f.Providers(), func(c *Cluster) bool { return c.ID == cluster.ID(provider.Name) }) {
			continue
		}
		as := "provider"
		if wanted := provider.EffectiveScheduling(); wanted != v1alpha1.SchedulingActive {
			as += ", " + strings.ToLower(string(wanted))
		}
		row(provider.Status.ClusterName, f.Broker.Name, provider.Status.Offered, as)
	}
	var consumers v1alpha1.ConsumerList
	if err := f.Broker.List(ctx, &consumers); err != nil {
		return err
	}
	for i := range consumers.Items {
		if cluster.ID(consumers.Items[i].Name) == f.Consumer.ID {
			mode := cmp.Or(string(consumers.Items[i].Status.Mode), "catalog only")
			row(f.Broker.Name, f.Consumer.Name, consumers.Items[i].Status.Offered, "broker, "+strings.ToLower(mode))
		}
	}
	allocatable, err := f.OfferedToConsumer(ctx)
	if err != nil {
		return err
	}
	row("", f.Consumer.Name, allocatable, "what the consumer's node for the broker has")
	return nil
}

// mebibytes returns the memory of a resource list as people read it.
func mebibytes(resources corev1.ResourceList) string {
	return fmt.Sprintf("%d MiB", resources.Memory().Value()>>20)
}

func (f *Federation) reportCopies(ctx context.Context, out io.Writer, namespace string) error {
	copies, err := f.Copies(ctx, namespace)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "  POD\tRUNS ON\tADDRESS THERE\tAT THE BROKER\tAT THE CONSUMER\tPATH\tROUND TRIP\tANSWERS AS")
	for i := range copies {
		pod := &copies[i]
		address := pod.Address[f.Consumer.Name]
		if pod.RunsOn == nil || address == "" {
			fmt.Fprintf(out, "  %s\t-\t\t\t\t\t\tnot running\n", pod.Name)
			continue
		}
		trip := "-"
		if took, err := f.RoundTrip(ctx, address); err == nil {
			trip = fmt.Sprintf("%.2f ms", took.Seconds()*1000)
		}
		host, err := f.Host(ctx, address+":8080")
		switch {
		case err != nil:
			host = "no answer"
		case host == pod.Name:
			host = "itself"
		}
		fmt.Fprintf(out, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", pod.Name, pod.RunsOn.Name, pod.Address[pod.RunsOn.Name],
			pod.Address[f.Broker.Name], address, pod.Path, trip, host)
	}
	return nil
}

// reportMemory writes the resident memory of our programs.
func (f *Federation) reportMemory(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "  CLUSTER\tPROGRAM\tMEMORY")
	all, err := f.Residents(ctx)
	for _, r := range all {
		fmt.Fprintf(out, "  %s\t%s\t%d MiB\n", r.Cluster, r.Program, r.MiB)
	}
	return err
}

// A Resident is a process of one of our programs, with its number in its cluster's node, and the memory that it has there, rounded up. Of a
// program with several commands Program has the command as well, as "network-manager agent".
type Resident struct {
	Cluster, Program string
	PID, MiB         int
}

// Residents returns the processes of our programs on the consumer and on the broker, as the nodes' process tables have them.
func (f *Federation) Residents(ctx context.Context) ([]Resident, error) {
	var all []Resident
	for _, c := range []*Cluster{f.Consumer, f.Broker} {
		var processes strings.Builder
		err := c.Lab.Exec(ctx, node.Command{Args: []string{"ps", "-eo", "pid=,rss=,args="}, Stdout: &processes})
		if err != nil {
			return nil, fmt.Errorf("list the processes of cluster %s: %w", c.Name, err)
		}
		for line := range strings.Lines(processes.String()) {
			if r, ours := residentIn(line); ours {
				r.Cluster = c.Name
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// residentIn returns the process that a line of a process table is about, with number, memory in KiB, and command line, and whether it is
// one of ours.
func residentIn(line string) (r Resident, ours bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return r, false // A process without a command line is none of ours.
	}
	pid, errPID := strconv.Atoi(fields[0])
	kibibytes, errMemory := strconv.Atoi(fields[1])
	program, installed := strings.CutPrefix(fields[2], "/usr/bin/")
	ours = installed && slices.Contains([]string{"broker", "network-manager", "virtual-kubelet"}, program)
	if errPID != nil || errMemory != nil || !ours {
		return r, false
	}
	if len(fields) > 3 && !strings.HasPrefix(fields[3], "-") {
		program += " " + fields[3]
	}
	return Resident{Program: program, PID: pid, MiB: (kibibytes + 1<<10 - 1) >> 10}, true
}
