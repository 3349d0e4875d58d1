// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// local returns the change of a Configuration into which Liqo has written the networks of this cluster.
func (c change) local() change {
	for _, o := range []object{c.old, c.new} {
		c.set(o, object{"pod": []any{"10.1.0.0/16"}, "external": []any{"10.2.0.0/16"}}, []string{"spec", "local", "cidr"})
	}
	return c
}

// networkWrites are what peers may write of networks and gateways in the tenant namespace of c, and what they may not.
func networkWrites() map[string]asked {
	return map[string]asked{
		"Second": {
			"Liqo works with one, and all are remembered.", creates(configurations).with("c-2", "metadata", "name"),
			`metadata.name is "c-2", want "c"`,
		},
		"SecondChanged": {
			"Nor does a peer go on with one that is called so.",
			updates(configurations).of("c-2", "metadata", "name").with("c-2", "metadata", "name"), "metadata.name",
		},
		"SecondGone": {"It may go.", deletes(configurations).of("c-2", "metadata", "name"), ""},
		"SecondServer": {
			"Each has a Service.", creates(gatewayServers).with("c-2", "metadata", "name"), `metadata.name is "c-2", want "c"`,
		},
		"SecondClient": {"Each is a pod.", creates(gatewayClients).with("c-2", "metadata", "name"), "metadata.name"},
		"SecondKey":    {"It has one.", creates(publicKeys).with("c-2", "metadata", "name"), "metadata.name"},
		"SecondTenant": {"It comes once.", creates(tenants).with("c-2", "metadata", "name"), "metadata.name"},
		"ServerOfPeople": {
			"liqoctl goes on with one that is there.",
			updates(gatewayServers).of("to-c", "metadata", "name").with("to-c", "metadata", "name"), "",
		},
		"Local": {
			"Packets would have any address.", creates(configurations).with([]any{"0.0.0.0/0"}, "spec", "local", "cidr", "pod"),
			"spec.local is not the peer's to set",
		},
		"LocalEmpty": {"Liqo would write nothing into it.", creates(configurations).with(object{}, "spec", "local"), "spec.local is"},
		"LocalChanged": {
			"It has been written.", updates(configurations).local().with([]any{"10.0.0.0/8"}, "spec", "local", "cidr", "external"), "spec.local is",
		},
		"LocalGone": {"Liqo has written it for others.", updates(configurations).local().with(nil, "spec", "local"), "spec.local is"},
		"LocalKept": {
			"liqoctl writes what it finds.", updates(configurations).local().with([]any{"10.57.0.0/16"}, "spec", "remote", "cidr", "pod"), "",
		},

		"Type":     {"It takes what there is.", creates(gatewayServers).with("NodePort", "spec", "endpoint", "serviceType"), ""},
		"TypeNone": {"It is for pods.", creates(gatewayServers).with(nil, "spec", "endpoint", "serviceType"), ""},
		"TypeName": {
			"It leads elsewhere.", creates(gatewayServers).with("ExternalName", "spec", "endpoint", "serviceType"), "spec.endpoint.serviceType",
		},
		"Port": {"It may be somebody's.", creates(gatewayServers).with(30443, "spec", "endpoint", "nodePort"), "spec.endpoint.nodePort"},
		"PortNext": {
			"Nor later.", updates(gatewayServers).of(30443, "spec", "endpoint", "nodePort").with(30444, "spec", "endpoint", "nodePort"),
			"spec.endpoint.nodePort",
		},
		"PortKept": {
			"People here have chosen it.",
			updates(gatewayServers).of(30443, "spec", "endpoint", "nodePort").with(30443, "spec", "endpoint", "nodePort"), "",
		},
		"PortGone": {
			"liqoctl replaces the endpoint.", updates(gatewayServers).of(30443, "spec", "endpoint", "nodePort"), "",
		},
		"Balancer": {
			"It is an address of ours.", creates(gatewayServers).with("203.0.113.1", "spec", "endpoint", "loadBalancerIP"),
			"spec.endpoint.loadBalancerIP",
		},
		"BalancerGone": {"So is that.", updates(gatewayServers).of("203.0.113.1", "spec", "endpoint", "loadBalancerIP"), ""},
		"BalancerNone": {"It is none.", creates(gatewayServers).with("", "spec", "endpoint", "loadBalancerIP"), ""},
		"Annotated": {
			"Who serves it reads them.", creates(gatewayServers).with("x", "spec", "serviceAnnotations", "example.com/x"),
			"spec.serviceAnnotations",
		},
		"Labelled": {
			"Also labels.", updates(gatewayServers).with("x", "spec", "serviceLabels", "example.com/x"), "spec.serviceLabels",
		},
		"AnnotatedKept": {
			"People here have.", updates(gatewayServers).of("x", "spec", "serviceAnnotations", "example.com/x").with("x", "spec",
				"serviceAnnotations", "example.com/x"), "",
		},
		"AnnotatedGone": {
			"They want it so.", updates(gatewayServers).of("x", "spec", "serviceAnnotations", "example.com/x"), "spec.serviceAnnotations",
		},
		"Template": {
			"Who knows what that makes?", creates(gatewayServers).with("ConfigMap", "spec", "serverTemplateRef", "kind"),
			"spec.serverTemplateRef is a ConfigMap",
		},
		"TemplateVersion": {
			"Nor that.", creates(gatewayServers).with("v1", "spec", "serverTemplateRef", "apiVersion"), `of "v1"`,
		},
		"TemplateNone": {"It is none.", creates(gatewayClients).with(nil, "spec", "clientTemplateRef", "kind"), "spec.clientTemplateRef"},
		"TemplateOther": {
			"It is for the other end.", creates(gatewayClients).with("WgGatewayServerTemplate", "spec", "clientTemplateRef", "kind"),
			"spec.clientTemplateRef",
		},
		"TemplateKept": {
			"People here have one of their own.",
			updates(gatewayServers).of("Own", "spec", "serverTemplateRef", "kind").with("Own", "spec", "serverTemplateRef", "kind"), "",
		},
		"TemplateNamed": {
			"They have made that.", creates(gatewayServers).with("wireguard-server-eks", "spec", "serverTemplateRef", "name"), "",
		},
		"GatewayKey":     {"It is any Secret.", creates(gatewayServers).with("x", "spec", "secretRef", "name"), "spec.secretRef.name"},
		"GatewayKeyNone": {"It is none.", creates(gatewayServers).with("", "spec", "secretRef", "name"), ""},
		"ClientKey":      {"At either end.", updates(gatewayClients).with("x", "spec", "secretRef", "name"), "spec.secretRef.name"},
		"ClientKeyKept": {
			"People here have made it.", updates(gatewayClients).of("x", "spec", "secretRef", "name").with("x", "spec", "secretRef", "name"), "",
		},
		"Endpoints": {
			"One is enough.", creates(gatewayClients).with(list(17, "203.0.113.%d"), "spec", "endpoint", "addresses"), "17 addresses",
		},
		"Endpoints16": {"A load balancer has some.", creates(gatewayClients).with(list(16, "203.0.113.%d"), "spec", "endpoint", "addresses"), ""},
		"EndpointSix": {"So are the new ones.", creates(gatewayClients).with([]any{"2001:db8::7"}, "spec", "endpoint", "addresses"), ""},
		"EndpointHere": {
			"It is the gateway itself.", creates(gatewayClients).with([]any{"127.0.0.1"}, "spec", "endpoint", "addresses"), "addresses[0]",
		},
		"EndpointLink": {
			"There may be the keys of the machine.",
			creates(gatewayClients).with([]any{"203.0.113.7", "169.254.169.254"}, "spec", "endpoint", "addresses"), "addresses[1]",
		},
		"EndpointMapped": {
			"It is the same.", creates(gatewayClients).with([]any{"::ffff:127.0.0.1"}, "spec", "endpoint", "addresses"), "addresses[0]",
		},
		"EndpointZone": {
			"It is on one of this machine's networks.", creates(gatewayClients).with([]any{"2001:db8::7%eth0"}, "spec", "endpoint", "addresses"),
			"addresses[0]",
		},
		"EndpointVariable": {
			"It would become part of a name.", creates(gatewayClients).with([]any{"$(POD_NAME).example.com"}, "spec", "endpoint", "addresses"),
			"neither an address nor a name",
		},
	}
}
