// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"testing"
)

// TestGuardPolicies asks the policies of deploy/guard about what the connector, the guard and Liqo write, and about what whoever has
// taken one of them over would.
func TestGuardPolicies(t *testing.T) {
	type fields = map[string]any
	const (
		deployments, secrets, nodes = "connector-deployments.brokering.liqo.io", "connector-secrets.brokering.liqo.io",
			"connector-nodes.brokering.liqo.io"
		peers, guard, webhooks = "connector-peers.brokering.liqo.io", "guard.brokering.liqo.io", "guard-webhooks.brokering.liqo.io"
		consumers              = "connector-consumers.brokering.liqo.io"
		services               = "services.brokering.liqo.io"
		peers1, copied1        = "peers-liqo1.brokering.liqo.io", "copied-liqo1.brokering.liqo.io"
		system, twins          = "system-namespaces.brokering.liqo.io", "twins.brokering.liqo.io"
		connector              = "system:serviceaccount:liqo-broker-connector:liqo-broker-connector"
		theGuard               = "system:serviceaccount:liqo-broker-guard:liqo-broker-guard"
	)
	// write is a request; what was there before, or is there after it, is nil if there is nothing.
	write := func(user, resource, operation string, before, after fields) fields {
		name, either := "", after
		if after == nil {
			either = before
		}
		if metadata, ok := either["metadata"].(fields); ok {
			name, _ = metadata["name"].(string)
		}
		input := fields{
			"request": fields{
				"resource": fields{"resource": resource}, "operation": operation, "namespace": "liqo", "name": name,
				"userInfo": fields{"username": user},
			},
			"object": nil, "oldObject": nil,
		}
		if before != nil {
			input["oldObject"] = before
		}
		if after != nil {
			input["object"] = after
		}
		return input
	}
	named := func(name string, more fields) fields {
		object := fields{"metadata": fields{"name": name}}
		maps.Copy(object, more)
		return object
	}

	gateway := func(image string, annotations, more fields) fields {
		spec := fields{"containers": []any{fields{"name": "gateway", "image": image}}, "hostNetwork": true}
		maps.Copy(spec, more)
		metadata := fields{"labels": fields{"app": "gateway"}}
		if annotations != nil {
			metadata["annotations"] = annotations
		}
		return named("liqo-gateway", fields{
			"spec": fields{"replicas": 1, "selector": fields{}, "template": fields{"metadata": metadata, "spec": spec}},
		})
	}
	const restarted = "kubectl.kubernetes.io/restartedAt"
	was := gateway("liqonet:v0.9.4", nil, nil)
	restart := func(before, after fields) fields { return write(connector, "deployments", "UPDATE", before, after) }
	more := gateway("liqonet:v0.9.4", nil, nil)
	more["spec"].(fields)["replicas"] = 0
	relabelled := gateway("liqonet:v0.9.4", nil, nil)
	relabelled["spec"].(fields)["template"].(fields)["metadata"].(fields)["labels"] = fields{"app": "another"}

	secret := func(name, kind string) fields { return named(name, fields{"type": kind}) }
	token, remote, other := secret("auth-token", "Opaque"), secret("remote-token-b1a2", "Opaque"), secret("liqo-certs", "Opaque")
	ofAccount := secret("remote-token-b1a2", "kubernetes.io/service-account-token")

	node := func(labels, spec fields) fields {
		return fields{"metadata": fields{"name": "liqo-b", "labels": labels}, "spec": spec}
	}
	virtual := func() fields { return fields{"liqo.io/type": "virtual-node", "kubernetes.io/os": "linux"} }
	physical, closed := fields{"kubernetes.io/os": "linux"}, fields{"unschedulable": true}
	cordon := func(before, after fields) fields { return write(connector, "nodes", "UPDATE", before, after) }

	record := func(annotations, labels fields) fields {
		return fields{"metadata": fields{"name": "b", "annotations": annotations, "labels": labels}}
	}
	ours, people := record(fields{"brokering.liqo.io/by-contract": "true"}, fields{}), named("b", nil)
	came := record(fields{}, fields{"discovery.liqo.io/discovery-type": "IncomingPeering"})
	fenced := func(name string, labels fields, resource, operation string) fields {
		input := write(theGuard, resource, operation, nil, named(name, nil))
		input["namespaceObject"] = fields{"metadata": fields{"name": "n", "labels": labels}}
		return input
	}
	peer := fields{"liqo.io/remote-cluster-id": "b"}
	tenant := fields{"liqo.io/remote-cluster-id": "b", "liqo.io/tenant-namespace": "true"}
	bounded := func(of string) fields {
		input := fenced("liqo-broker", tenant, "resourcequotas", "UPDATE")
		input["object"].(fields)["spec"] = fields{"hard": fields{"count/resourceslices.authentication.liqo.io": "100", of: "0"}}
		return input
	}
	bare := fenced("liqo-broker", nil, "networkpolicies", "CREATE")
	bare["namespaceObject"] = fields{"metadata": fields{"name": "kube-system"}}

	hook := func(certificate, policy string) fields {
		return named("liqo-broker-guard", fields{"webhooks": []any{fields{
			"name": "isolate.brokering.liqo.io", "failurePolicy": policy,
			"clientConfig": fields{"caBundle": certificate, "service": fields{"name": "liqo-broker-guard"}},
		}}})
	}
	announce := func(after fields) fields {
		return write(theGuard, "validatingwebhookconfigurations", "UPDATE", hook("", "Fail"), after)
	}

	service := func(operation string, spec fields) fields {
		var before fields
		if operation == "UPDATE" {
			before = named("s", fields{"spec": fields{}})
		}
		return write("system:serviceaccount:liqo-tenant-b:vk-b", "services", operation, before, named("s", fields{"spec": spec}))
	}
	// With Liqo 1.x.
	offloads := func(namespace string, labels fields) fields {
		input := write("admin", "namespaceoffloadings", "CREATE", nil, named("offloading", nil))
		input["request"].(fields)["namespace"] = namespace
		input["namespaceObject"] = fields{"metadata": fields{"name": namespace, "labels": labels}}
		input["params"] = fields{"metadata": fields{"namespace": "liqo"}}
		return input
	}
	consumer := func(resource, subresource string, spec fields) fields {
		object := named("big", fields{"spec": spec})
		object["metadata"].(fields)["labels"] = fields{
			"liqo.io/remote-cluster-id": "b", "liqo.io/replicated": "true", "liqo.io/originID": "b", "liqo.io/remoteID": "own",
		}
		input := write("b", resource, "UPDATE", object, object)
		input["request"].(fields)["subResource"] = subresource
		input["namespaceObject"] = fields{"metadata": fields{"labels": fields{"liqo.io/remote-cluster-id": "b"}}}
		input["params"] = fields{"data": fields{"CLUSTER_ID": "own"}}
		return input
	}
	slice := func(class string) fields {
		return fields{"consumerClusterID": "b", "providerClusterID": "own", "class": class}
	}
	peersSecret := func(operation, name string) fields {
		object := secret(name, "Opaque")
		object["metadata"].(fields)["labels"] = fields{"liqo.io/remote-cluster-id": "b", "liqo.io/nonce": "true"}
		input := write("b", "secrets", operation, nil, object)
		if operation == "DELETE" {
			input["object"], input["oldObject"] = nil, object
		}
		input["namespaceObject"] = fields{"metadata": fields{"labels": tenant}}
		input["params"] = fields{"data": fields{"CLUSTER_ID": "own"}}
		return input
	}
	copied := func(resource string, metadata, more fields) fields {
		object := fields{"metadata": metadata}
		maps.Copy(object, more)
		input := write("big-5e6f", resource, "CREATE", nil, object)
		input["request"].(fields)["userInfo"].(fields)["groups"] = []any{"b"}
		input["namespaceObject"] = fields{"metadata": fields{"labels": peer}}
		return input
	}
	typed := func(secretType string) fields { return fields{"type": secretType} }
	granted := func(labels fields) fields {
		after := named("big", fields{"status": fields{"nodeLabels": labels}})
		return write("system:serviceaccount:liqo:liqo-crd-replicator", "resourceslices/status", "UPDATE", after, after)
	}
	cases := map[string]struct {
		reason string
		policy string
		input  fields
		want   bool
	}{
		"Restart": {
			"The connector restarts the gateway.", deployments, restart(was, gateway("liqonet:v0.9.4", fields{restarted: "t"}, nil)), true,
		},
		"RestartAgain": {
			"Also a second time.", deployments,
			restart(gateway("i", fields{restarted: "t", "a": "b"}, nil), gateway("i", fields{restarted: "u", "a": "b"}, nil)), true,
		},
		"Image": {"It would run as root on a node.", deployments, restart(was, gateway("another", fields{restarted: "t"}, nil)), false},
		"HostNetwork": {
			"It would be elsewhere.", deployments, restart(was, gateway("liqonet:v0.9.4", nil, fields{"hostNetwork": false})), false,
		},
		"HostPID": {"It would have the node.", deployments, restart(was, gateway("liqonet:v0.9.4", nil, fields{"hostPID": true})), false},
		"Annotation": {
			"Some of them give rights.", deployments,
			restart(was, gateway("liqonet:v0.9.4", fields{"container.apparmor.security.beta.kubernetes.io/gateway": "unconfined"}, nil)), false,
		},
		"Annotated": {
			"Also those that are there.", deployments, restart(gateway("i", fields{"a": "b"}, nil), gateway("i", fields{"a": "c"}, nil)), false,
		},
		"Replicas":     {"There would be no tunnel.", deployments, restart(was, more), false},
		"GatewayLabel": {"Others would be taken for it.", deployments, restart(was, relabelled), false},

		"Token":       {"The connector replaces the token.", secrets, write(connector, "secrets", "UPDATE", token, token), true},
		"NoTokenGone": {"It does not take it away ...", secrets, write(connector, "secrets", "DELETE", token, nil), false},
		"NoTokenMade": {"... nor makes one.", secrets, write(connector, "secrets", "CREATE", nil, token), false},
		"Remote":      {"It keeps those of sellers.", secrets, write(connector, "secrets", "CREATE", nil, remote), true},
		"RemoteNoType": {
			"The API server names the type.", secrets, write(connector, "secrets", "CREATE", nil, named("remote-token-b1a2", nil)), true,
		},
		"RemoteNext": {"It replaces them.", secrets, write(connector, "secrets", "UPDATE", remote, remote), true},
		"RemoteGone": {"It takes them away.", secrets, write(connector, "secrets", "DELETE", remote, nil), true},
		"Other":      {"It is not a token.", secrets, write(connector, "secrets", "UPDATE", other, other), false},
		"OtherMade":  {"Somebody may trust it.", secrets, write(connector, "secrets", "CREATE", nil, other), false},
		"OtherGone":  {"Somebody needs it.", secrets, write(connector, "secrets", "DELETE", other, nil), false},
		"Account": {
			"Kubernetes would write a token of an account into it.", secrets, write(connector, "secrets", "CREATE", nil, ofAccount), false,
		},
		"AccountChange": {"Kubernetes keeps the type.", secrets, write(connector, "secrets", "UPDATE", ofAccount, ofAccount), false},

		"Cordon":   {"The connector drains.", nodes, cordon(node(virtual(), fields{}), node(virtual(), closed)), true},
		"Uncordon": {"And opens again.", nodes, cordon(node(virtual(), closed), node(virtual(), fields{})), true},
		"Label": {
			"Pods would go where they are not to.", nodes, cordon(node(virtual(), fields{}), node(fields{"liqo.io/type": "virtual-node"}, fields{})),
			false,
		},
		"Real":     {"It closes no others.", nodes, cordon(node(physical, fields{}), node(physical, closed)), false},
		"Disguise": {"It makes none virtual.", nodes, cordon(node(physical, fields{}), node(virtual(), closed)), false},

		"Record":       {"The connector makes peers by contract.", peers, write(connector, "foreignclusters", "CREATE", nil, ours), true},
		"RecordGone":   {"And forgets them.", peers, write(connector, "foreignclusters", "DELETE", ours, nil), true},
		"RecordNext":   {"It changes them.", peers, write(connector, "foreignclusters", "UPDATE", ours, ours), true},
		"Came":         {"A buyer came, and Liqo has written it down.", peers, write(connector, "foreignclusters", "UPDATE", came, ours), true},
		"CameGone":     {"That one is marked first.", peers, write(connector, "foreignclusters", "DELETE", came, nil), false},
		"Unmarked":     {"It makes no others.", peers, write(connector, "foreignclusters", "CREATE", nil, people), false},
		"People":       {"People have made it.", peers, write(connector, "foreignclusters", "DELETE", people, nil), false},
		"PeopleMarked": {"They have still.", peers, write(connector, "foreignclusters", "UPDATE", people, ours), false},

		"Consumer":       {"The connector grants what was bought.", consumers, write(connector, "consumers", "CREATE", nil, ours), true},
		"ConsumerNext":   {"More or less of it.", consumers, write(connector, "consumers", "UPDATE", ours, ours), true},
		"ConsumerGone":   {"And nothing any more.", consumers, write(connector, "consumers", "DELETE", ours, nil), true},
		"Granted":        {"It gives nothing to whom nobody has sold.", consumers, write(connector, "consumers", "CREATE", nil, people), false},
		"OfPeople":       {"Nor to whom people have let in.", consumers, write(connector, "consumers", "UPDATE", people, people), false},
		"OfPeopleMarked": {"Whatever it calls that.", consumers, write(connector, "consumers", "UPDATE", people, ours), false},
		"OfPeopleGone":   {"And takes nothing from them.", consumers, write(connector, "consumers", "DELETE", people, nil), false},

		"Fence":        {"The guard fences peers.", guard, fenced("liqo-broker", peer, "networkpolicies", "CREATE"), true},
		"Quota":        {"And bounds them.", guard, fenced("liqo-broker", peer, "resourcequotas", "UPDATE"), true},
		"FenceOthers":  {"It fences nobody else.", guard, bare, false},
		"QuotaOthers":  {"Nor bounds.", guard, fenced("liqo-broker", fields{"a": "b"}, "resourcequotas", "CREATE"), false},
		"FenceLiqo":    {"Gateways of Liqo 1.x reach others.", guard, fenced("liqo-broker", tenant, "networkpolicies", "CREATE"), false},
		"QuotaTenant":  {"It bounds what peers ask of Liqo 1.x.", guard, bounded("count/renews.authentication.liqo.io"), true},
		"QuotaLiqo":    {"And leaves Liqo its pods.", guard, bounded("count/pods"), false},
		"QuotaCores":   {"And what these need.", guard, bounded("requests.liqo.io"), false},
		"FenceAnother": {"That is somebody's own.", guard, fenced("deny", peer, "networkpolicies", "UPDATE"), false},

		"Certificate": {"The guard announces its certificate.", webhooks, announce(hook("new", "Fail")), true},
		"Ignore":      {"And changes nothing else.", webhooks, announce(hook("new", "Ignore")), false},

		"Service": {"Peers have Services.", services, service("CREATE", fields{"clusterIP": "None"}), true},
		"GivenIP": {"The API server gives them addresses, and asks then.", services, service("CREATE", fields{"clusterIP": "10.96.7.7"}), true},
		"KeptIP":  {"They keep them.", services, service("UPDATE", fields{"clusterIP": "10.96.7.7", "externalIPs": []any{}}), true},
		"ExternalIPs": {
			"All nodes would lead there what goes to it.", services, service("CREATE", fields{"externalIPs": []any{"198.51.100.7"}}), false,
		},
		"ExternalLater":   {"It is no better later.", services, service("UPDATE", fields{"externalIPs": []any{"198.51.100.7"}}), false},
		"Offloaded":       {"A namespace of people goes where they want.", system, offloads("web", nil), true},
		"OffloadedLiqo":   {"It has the keys of this cluster.", system, offloads("liqo", nil), false},
		"OffloadedKube":   {"It has those of Kubernetes.", system, offloads("kube-system", nil), false},
		"OffloadedBroker": {"It has those of a party.", system, offloads("liqo-broker-connector", nil), false},
		"OffloadedTenant": {"It has those of a peer.", system, offloads("liqo-tenant-b", nil), false},
		"OffloadedCalled": {"Whatever it is called.", system, offloads("b", fields{"liqo.io/tenant-namespace": "true"}), false},

		"Slice":        {"A consumer asks for resources.", peers1, consumer("resourceslices", "", slice("liqo-broker")), true},
		"SliceDefault": {"Liqo would grant all of them.", peers1, consumer("resourceslices", "", slice("default")), false},
		"SliceStatus": {
			"It does not answer itself.", peers1, consumer("resourceslices/status", "status", slice("liqo-broker")), false,
		},
		"SliceGranted": {"A provider says what it is.", copied1, granted(fields{"topology.kubernetes.io/region": "eu"}), true},
		"SliceRenamed": {"And not which one.", copied1, granted(fields{"liqo.io/remote-cluster-id": "v"}), false},

		"TwinSecret": {"Pods of a consumer have Secrets.", twins, copied("secrets", fields{}, typed("kubernetes.io/tls")), true},
		"TwinAccount": {
			"It would have the token in it.", twins, copied("secrets", fields{}, typed("kubernetes.io/service-account-token")), false,
		},
		"TwinWebhook": {
			"Liqo would have the API server believe it.", twins,
			copied("secrets", fields{"labels": fields{"liqo.io/webhook": "true"}}, typed("Opaque")), false,
		},
		"TwinPod":  {"A consumer offloads a pod.", twins, copied("shadowpods", fields{}, nil), true},
		"TwinStay": {"Its namespace would stay.", twins, copied("shadowpods", fields{"finalizers": []any{"example.com/mine"}}, nil), false},
		"NonceGone": {
			"Liqo's own stays.", peers1, peersSecret("DELETE", "liqo-remote-certificate"), false,
		},
		"Nonce": {"It is asked for.", peers1, peersSecret("CREATE", "liqo-nonce"), true},

		"LoadBalancerIP": {"Some clouds give it.", services, service("CREATE", fields{"loadBalancerIP": "198.51.100.7"}), false},
	}
	known := policies(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, ok := known[tc.policy]
			if !ok {
				t.Fatalf("deploy/guard has no policy %s", tc.policy)
			}
			if !asks(t, spec, tc.input) {
				t.Fatalf("%s\nthe policy is not asked", tc.reason)
			}
			if got := admits(t, spec, tc.input); got != tc.want {
				t.Errorf("%s\nadmitted: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	own := write(connector, "secrets", "UPDATE", other, other)
	own["request"].(fields)["namespace"] = "liqo-broker-connector"
	if asks(t, known[secrets], own) {
		t.Error("the connector is asked about the Secrets of its own namespace")
	}
	for _, policy := range []string{deployments, secrets, nodes, peers, consumers, guard, webhooks} {
		if asks(t, known[policy], write("admin", known[policy].MatchConstraints.ResourceRules[0].Resources[0], "UPDATE", other, other)) {
			t.Errorf("people are asked as the connector or the guard: %s", policy)
		}
	}
}
