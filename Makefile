# Copyright The liqo-broker Authors.
# SPDX-License-Identifier: Apache-2.0

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# What is built, checked and tested is compiled once, all the same way, the 1,500 packages that it is made of first. Only the race detector is
# another way, and needs the C library. verify vets; the tests would do it once more.
export CGO_ENABLED ?= 0
export GOFLAGS     ?= -trimpath -vet=off

VERSION      ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PACKAGE      := github.com/capacitorset/liqo-broker
REPOSITORY   ?= capacitorset
TAG          ?= v0.1.0
OUT          ?= dist
REVISION     ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
KUBERNETES   ?= v1.34
# The line of Liqo of demo, lab-up, test-e2e, test-smoke, test-rest, test-conformance, bench-pods and bench-grants: 0.9 or 1.2. All else
# has what it is about.
LIQO         ?= $(or $(LIQO_BROKER_LIQO),0.9)
# The line whose journeys test walks in full, unless make test LIQO=1.2 or 0.9 says which; of the other line it walks the smoke, and
# test-full all.
FULL_LIQO    ?= 1.2
OTHER_LIQO    = $(filter-out $(LIQO),0.9 1.2)
BINARIES     := broker virtual-kubelet network-manager kubectl-liqo_broker registry connector
IMAGES       := liqo-broker liqo-broker-vk liqo-broker-network-manager liqo-broker-connector liqo-broker-registry
PATCHED      := .build/patched/github.com/liqotech/liqo/go.mod
GOLANGCI     := .build/bin/golangci-lint
GOLANGCI_VERSION := v2.11.4
GRPC_PLUGIN_VERSION := v1.5.1
OAPI_CODEGEN_VERSION := v2.8.2
TOPOLOGIES   ?= equal distinct partial nested
ADDRESS_TESTS := TestAggregator|TestOrchestrator|TestServicesReachTheConsumer|TestProvidersReachEachOther|TestAddressesFollow
# They restart what others use, run a Prometheus in the lab, leave a second broker there, or measure.
ON_ITS_OWN   := TestBrowserAudited|TestBrowserFaults|TestBrowserHosted|TestBrowserTrial|TestPictures|TestDelay|TestTwoBrokers|TestSpeed|TestBusyNode|TestGrantsReachNodes
# They go a way that others go for the most part, or take their time for what is not ours alone.
OTHER_WAYS   := TestAppliedAtOnce|TestAutoscaling|TestClaimsAreRefused|TestDevices|TestDrainOfDatabase|TestFrontDoor/ByHand|TestFrontDoor/Helm|TestGatewayStopped|TestInstallationInTheWrongOrder|TestIPAMPortOpensToVirtualKubelets|TestLongNames|TestNamespacesLeaveNothing|TestOffloadedTwice|TestPeeringByCredentials|TestPodsWaitForTheDaemon|TestPools|TestRelayAddressesEndWithTheirPods|TestRelayAddressesOfEndpointsLast|TestSecondVirtualKubelet|TestSilentGateway|TestUDP|TestVolumesOfProviders|TestVolumesStayAtHome
# They say for how long nobody may be without an answer, which depends on what else the machine does, or go other ways.
FULL_ONLY    := TestFaults|TestSlowAPIServers|$(OTHER_WAYS)
# They hold the most with few: both modes, a drain, a lost provider, and who may reach and ask what, on what the plugin has installed.
SMOKE        := TestAggregator|TestCatalog|TestEveryPortKnowsItsCallers|TestFailover|TestHostilePeers|TestOrchestrator|TestRemoteIPAM
# Journeys of the trade that take minutes, and go the way of others for the most part.
TRADE_REST   := TestKilled|TestNotReachable|TestResell|TestTraders$$
# What drives a browser: npm puts it there.
UI_MODULES   := .build/ui-node/node_modules
BROWSER      := LIQO_BROKER_UI_MODULES=$(CURDIR)/$(UI_MODULES)
# walk has journeys of test/e2e walked with a line of Liqo: line, time limit, which ones.
walk          = $(BROWSER) LIQO_BROKER_LIQO=$(1) $(JOURNEYS) -tags=e2e -count=1 -timeout=$(2) $(3) ./test/e2e
# What is skipped is so for a journey that is walked once more, too.
smoke         = $(call walk,$(1),30m,-skip '$(ON_ITS_OWN)|$(FULL_ONLY)' -run '$(SMOKE)')
# The same source gives the same bytes in any folder: nothing of the machine, and of git only what VERSION says.
GO_BUILD     := CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 go build -trimpath -buildvcs=false -ldflags '-s -w -X $(PACKAGE)/pkg/version.version=$(VERSION)'

# What a release is for: the images, and the plugin of kubectl.
IMAGE_PLATFORMS  ?= linux/amd64 linux/arm64
PLUGIN_PLATFORMS ?= $(IMAGE_PLATFORMS) darwin/amd64 darwin/arm64 windows/amd64
RELEASE      := .build/bin/release
JOURNEYS     := .build/bin/journeys
RELEASED     := .build/release

# What the lab runs, and copies into its test images, besides what it builds itself; git, gcc and the C library are for the
# build and for tests with the race detector, and Prometheus and PostgreSQL for the tests that ask one.
DEBIAN_PACKAGES := busybox-static ca-certificates conntrack containerd containernetworking-plugins curl etcd-server gcc git \
	iperf3 iproute2 ipset iptables iputils-ping libc6-dev openssl postgresql prometheus runc tcpdump wireguard-go wireguard-tools

# What drives a browser, for the tests of the page alone. All but the browser may have come from elsewhere.
UI_PACKAGES := chromium nodejs npm

# What images of Kubernetes' conformance tests are made of, besides.
CONFORMANCE_PACKAGES := apache2-bin bind9-dnsutils netcat-openbsd nginx
CONFORMANCE := .build/conformance

##@ Two commands

.PHONY: demo
demo: deps build images bin/lab bin/demo ## Bring up a federation of four clusters with a working broker, and show it; with LIQO=1.2 on that line of Liqo.
	bin/demo up --kubernetes $(KUBERNETES) --liqo $(LIQO)

.PHONY: demo-trade
demo-trade: deps build images bin/lab bin/demo bin/helm ## Have clusters that do not know each other find, buy, use and give back capacity, and show it.
	bin/demo trade --kubernetes $(KUBERNETES)

# What a target needs has the variables of the target.
test test-full: LIQO = $(FULL_LIQO)

.PHONY: test
test: deps test-unit test-ui test-virtual-kubelet test-liqo1 test-chart test-release test-values test-e2e test-other test-trade ## Run the unit tests, the page in a browser, the chart, the release, bad values, and the journeys on four clusters, peered and not.

##@ Federation

.PHONY: demo-down
demo-down: lab-down ## Remove the federation.

.PHONY: lab-up
lab-up: deps bin/lab ## Bring up the four clusters with Liqo and their peerings, without the broker.
	bin/lab up --kubernetes $(KUBERNETES) --liqo $(LIQO)

.PHONY: lab-down
lab-down: bin/lab ## Remove the four clusters.
	bin/lab down

##@ Build

.PHONY: deps
deps: ## Install the Debian packages that are missing.
	@build/deps.sh $(DEBIAN_PACKAGES)

.PHONY: build
build: $(BINARIES:%=bin/%) ## Build the programs and the plugin of kubectl, static, into bin/.

.PHONY: images
images: $(IMAGES:%=bin/images/%.tar) ## Write the images, as archives that containerd and docker load, to bin/images/.

.PHONY: release
release: $(PATCHED) $(RELEASE) ## Write what people get to OUT, for VERSION=v1.2.3: images, chart, plugin, manifests, and papers about them.
	@test -z "$$(git status --porcelain)" || { echo "release: commit what has changed first: the provenance names a commit" >&2; exit 1; }
	rm -rf $(RELEASED)
	build() ( export GOOS=$${1%/*} GOARCH=$${1#*/}; cd cmd/$${2%.exe} && $(GO_BUILD) -o $(CURDIR)/$(RELEASED)/$${1/\//-}/$$2 . ); \
	for platform in $(IMAGE_PLATFORMS); do \
		for program in broker virtual-kubelet network-manager connector registry; do build $$platform $$program; done; \
	done; \
	for platform in $(PLUGIN_PLATFORMS); do \
		case $$platform in windows/*) build $$platform kubectl-liqo_broker.exe;; *) build $$platform kubectl-liqo_broker;; esac; \
	done
	$(RELEASE) pack -version '$(VERSION)' -revision '$(REVISION)' -epoch '$(SOURCE_DATE_EPOCH)' -binaries $(RELEASED) \
		-images '$(IMAGE_PLATFORMS)' -plugins '$(PLUGIN_PLATFORMS)' -o $(OUT)

.PHONY: release-reproducible
release-reproducible: ## Release VERSION from two clones in different folders, and compare all that comes out.
	build/reproducible.sh '$(VERSION)' '$(OUT)'

.PHONY: publish
publish: $(RELEASE) ## Push the images and the charts of the release in OUT to REGISTRY, with the credentials that docker has.
	$(RELEASE) publish -folder '$(OUT)' -registry '$(REGISTRY)'

.PHONY: sign
sign: $(RELEASE) ## Sign the release in OUT, and its images and charts in REGISTRY, with the private key in the file KEY.
	$(RELEASE) sign -folder '$(OUT)' -registry '$(REGISTRY)' -key '$(KEY)'

.PHONY: set-version
set-version: $(RELEASE) ## Write VERSION=v1.2.3 into all manifests and documents that name the version of the images.
	$(RELEASE) set-version -version '$(VERSION)'

.PHONY: text
text: $(PATCHED) ## Print what users read into the golden files and docs/reference: help, sentences, columns and refusals of the CRDs, metrics, events.
	go test ./test/text -update
	go test ./cmd/... ./pkg/trade/registry/server -run '^(TestHelp|TestHelpOfCommands|TestMetricTable)$$' -update
	go test -C cmd/virtual-kubelet . ./internal/serve -run '^(TestHelp|TestMetricTable)$$' -update
	go test ./pkg/trade/registry/server -run '^TestStores$$/^SQLite$$/^REAR$$' -update
	go test ./pkg/httpapi ./pkg/trade/registry/server -run '^TestAnswers$$' -update
	go test ./test/reference -update

# As: make dashboard-picture PROMETHEUS=http://127.0.0.1:9090 DASHBOARD=provider PICTURE_FLAGS='-var provider=CLUSTER_ID -range 1h'
PROMETHEUS ?= http://127.0.0.1:9090
DASHBOARD  ?= overview

.PHONY: dashboard-picture
dashboard-picture: ## Draw a dashboard from what a Prometheus knows, to docs/images/.
	go run ./test/dashboardpicture -prometheus $(PROMETHEUS) -dashboard deploy/monitoring/dashboards/$(DASHBOARD).json \
		-out docs/images/dashboard-$(DASHBOARD).svg $(PICTURE_FLAGS)

.PHONY: generate
generate: .build/bin/protoc-gen-go .build/bin/protoc-gen-go-grpc .build/bin/oapi-codegen ## Generate the CRDs, the charts from the manifests, the components from the patches, and the code that is made from other code.
	@build/deps.sh protobuf-compiler
	go tool -modfile=build/tools/go.mod controller-gen object:headerFile=build/tools/header.txt paths=./pkg/api/... paths=./pkg/liqo/v1/api
	go build -C build/tools -buildvcs=false -o $(CURDIR)/.build/bin/crds ./crds && .build/bin/crds
	go build -C build/tools -buildvcs=false -o $(CURDIR)/.build/bin/chart ./chart && .build/bin/chart
	for proto in remoteipam/remoteipamv1/remoteipam liqo/v09/resourcereader/resourcereaderv1/resourcereader; do \
		PATH=$(CURDIR)/.build/bin:$$PATH protoc --proto_path=pkg/$${proto%/*} \
			--go_out=pkg/$${proto%/*} --go_opt=paths=source_relative \
			--go-grpc_out=pkg/$${proto%/*} --go-grpc_opt=paths=source_relative $${proto##*/}.proto; \
	done
	go run ./build/openapi docs/api .build/openapi-3.0.json
	.build/bin/oapi-codegen -config test/apiclient/config.yaml -o test/apiclient/client.gen.go .build/openapi-3.0.json
	go build -C build/tools -buildvcs=false -o $(CURDIR)/.build/bin/ui ./ui && .build/bin/ui

.PHONY: ui
ui: ## Bundle the page of the broker from the folder ui into pkg/ui/dist, and refuse one that is too large.
	go build -C build/tools -buildvcs=false -o $(CURDIR)/.build/bin/ui ./ui && .build/bin/ui

.PHONY: clean
clean: ## Remove what the build made; the lab's cache of built programs stays.
	rm -rf bin .build/patched $(RELEASED)

##@ Check

.PHONY: test-unit
test-unit: deps ## Run the tests that need neither root nor a cluster; some start Debian's prometheus and postgresql.
	go test ./...

.PHONY: test-race
test-race: deps $(PATCHED) ## Run the same, and those of the virtual kubelet, with the race detector, which takes longer.
	CGO_ENABLED=1 go test -race ./...
	CGO_ENABLED=1 go test -C cmd/virtual-kubelet -race ./...

.PHONY: test-fast
test-fast: $(PATCHED) ## Run the unit tests of what has changed: for the inner loop.
	go test ./...
	go test -C cmd/virtual-kubelet ./...

# Go would not see that files outside these modules have changed, and give the last result.
.PHONY: test-chart
test-chart: ## Render the Helm charts and compare them with what kubectl applies, and Liqo's chart with the patches.
	go test -C build/tools -count=1 ./chart
	go test -C test/chart -count=1 ./...

# Go would not see that the programs or the documents have changed.
.PHONY: test-release
test-release: $(PATCHED) ## Pack small programs as a release does, twice, push them to a registry, and check the licences of all that is linked.
	go test -C build/release -count=1 ./...

# Only this needs node and a browser. What comes from npm is what ui/package-lock.json says, and runs nothing when it is installed; npm
# writes the target when all is there.
.PHONY: ui-modules
ui-modules:
	@build/deps.sh $(UI_PACKAGES)
	@$(MAKE) --no-print-directory $(UI_MODULES)/.package-lock.json

$(UI_MODULES)/.package-lock.json: ui/package.json ui/package-lock.json
	mkdir -p .build/ui-node && cp $^ .build/ui-node/
	npm ci --prefix .build/ui-node --ignore-scripts --no-audit --no-fund --silent --fetch-retries 5

.PHONY: test-ui
test-ui: ui ui-modules ## Check the types of the page, test its parts, and all its screens in a browser, with made-up clusters; it asks npm for what it needs.
	$(UI_MODULES)/.bin/tsc --project ui
	rm -rf .build/ui-tests && .build/bin/ui -tests .build/ui-tests
	MODULES=$(CURDIR)/$(UI_MODULES) NODE_OPTIONS=--import=$(CURDIR)/ui/test/older.mjs \
		node --test .build/ui-tests/*.test.mjs ui/test/*.test.mjs

.PHONY: test-e2e-ui
test-e2e-ui: deps build images bin/lab $(JOURNEYS) ui-modules ## Open the page of a broker in a browser, on four clusters; it asks npm for what it needs.
	LIQO_BROKER_UI_SOON=5s $(call walk,$(LIQO),25m,-run '^TestBrowser')

# The journeys are run in test/e2e, which is where relative paths would lead.
.PHONY: ui-pictures
ui-pictures: deps build images bin/lab $(JOURNEYS) ui-modules ## Take pictures of the page with a lab's broker, to docs/images/.
	LIQO_BROKER_PICTURES=$(CURDIR)/docs/images \
		$(call walk,$(LIQO),20m,-run '^TestPictures$$')

.PHONY: test-virtual-kubelet
test-virtual-kubelet: $(PATCHED) ## Run the unit tests of the virtual kubelet, and of what the source patches bring.
	go test -C cmd/virtual-kubelet ./...

# It compiles what Liqo 1.x declares, and nothing that does anything.
.PHONY: test-liqo1
test-liqo1: ## Compare our types of Liqo 1.x, and its labels, with those of the version that we follow.
	go test -C test/liqo1 ./...

.PHONY: test-values
test-values: deps bin/lab ## On a real API server, write junk into all fields that the broker reads, show it as the page does, see who changed what, and install, upgrade and uninstall the charts.
	programs=$$(bin/lab build --kubernetes $(KUBERNETES)); \
	for daemon in TestJunk TestInventory TestAudit TestGuardAudit; do \
		LIQO_BROKER_TEST_PROGRAMS=$$programs go test -count=1 -timeout=10m -v -run "^$$daemon$$" ./cmd/broker || exit; \
	done; \
	LIQO_BROKER_TEST_PROGRAMS=$$programs go test -count=1 -timeout=10m -v -run '^TestCluster$$' ./pkg/uiserver/answer; \
	LIQO_BROKER_TEST_PROGRAMS=$$programs go test -C test/chart -count=1 -timeout=10m -v -run '^TestRelease' .

.PHONY: test-e2e
test-e2e: deps build images bin/lab bin/helm $(JOURNEYS) ui-modules ## Walk the journeys on four clusters, with LIQO=1.2 those that apply to it; uses a running demo of that line, or brings one up and down.
	$(call walk,$(LIQO),70m,-skip '$(ON_ITS_OWN)|$(FULL_ONLY)')

.PHONY: test-smoke
test-smoke: deps build images bin/lab bin/helm $(JOURNEYS) ## Walk the journeys that hold the most, in ten minutes.
	$(call smoke,$(LIQO))

.PHONY: test-other
test-other: deps build images bin/lab bin/helm $(JOURNEYS) ## Walk the same with the other line of Liqo than LIQO says.
	$(call smoke,$(OTHER_LIQO))

.PHONY: test-trade
test-trade: deps build images bin/lab bin/helm $(JOURNEYS) ui-modules ## Walk the journeys of the trade on four clusters that do not know each other, and a registry outside of them.
	$(BROWSER) $(JOURNEYS) -tags=e2e -count=1 -timeout=40m -skip '^TestNegotiationSpeed$$|$(TRADE_REST)' ./test/trade

.PHONY: test-trade-rest
test-trade-rest: deps build images bin/lab bin/helm $(JOURNEYS) ## Walk those that test-trade leaves out.
	$(JOURNEYS) -tags=e2e -count=1 -timeout=40m -run '$(TRADE_REST)' ./test/trade

.PHONY: test-stock
test-stock: deps bin/lab bin/kubectl-liqo_broker $(IMAGES:%=bin/images/%.tar) ## Run a catalog and a broker with Liqo 1.2, and show what that leaves open in a chain of clusters; builds it the first time.
	go test -tags=e2e -count=1 -timeout=45m -v ./test/stock

.PHONY: test-early
test-early: deps build images bin/lab ## Install a connector on a cluster of its own, and Liqo afterwards.
	go test -tags=e2e -count=1 -timeout=30m -v ./test/early

.PHONY: test-cidrs
test-cidrs: deps build images bin/lab $(JOURNEYS) ## Walk the journeys of addresses with CIDRs that are equal, distinct, and inside one another.
	for topology in $(TOPOLOGIES); do \
		bin/lab down; \
		LIQO_BROKER_TOPOLOGY=$$topology $(JOURNEYS) -tags=e2e -count=1 -timeout=30m -run '$(ADDRESS_TESTS)' ./test/e2e; \
	done

.PHONY: test-worlds
test-worlds: ## Decide in random worlds, other ones each time, for three minutes in each kind of them.
	mkdir -p .build
	rm -f .build/worlds
	LIQO_BROKER_RANDOM_WORLDS=3m LIQO_BROKER_WORLDS_RECORD=$(CURDIR)/.build/worlds \
		go test -count=1 -timeout=30m ./pkg/core/choice ./pkg/core/placement ./pkg/controller/twin ./test/worlds/trade
	cat .build/worlds

.PHONY: test-rest
test-rest: deps build images bin/lab bin/helm bin/metrics-server $(JOURNEYS) ui-modules ## Walk the journeys that test-e2e leaves out, with faults of 90 s, each kind on a lab of its own; for hours.
	bin/lab down
	LIQO_BROKER_FAULT_SECONDS=90 $(call walk,$(LIQO),90m,-run TestFaults)
	bin/lab down
	LIQO_BROKER_SLOW_SECONDS=120 $(call walk,$(LIQO),30m,-run TestSlowAPIServers)
	bin/lab down
	$(call walk,$(LIQO),90m,-run '$(OTHER_WAYS)')
	bin/lab down
	$(call walk,$(LIQO),60m,-run '$(ON_ITS_OWN)')
	bin/lab down

# With --dry-run make runs the lines that run make, and them alone: they have nothing else in them.
.PHONY: test-full
test-full: test test-trade-rest test-race test-worlds test-cidrs ## Run everything, the race detector, random worlds, both lines of Liqo in full with faults of 90 s, stock Liqo 1.2, a connector before Liqo, and the journeys again on the other versions of Kubernetes.
	bin/lab down
	$(MAKE) test-e2e LIQO=$(OTHER_LIQO)
	for line in $(LIQO) $(OTHER_LIQO); do $(MAKE) test-rest LIQO=$$line; done
	LIQO_BROKER_KUBERNETES=v1.28 $(MAKE) test-e2e LIQO=0.9
	bin/lab down
	LIQO_BROKER_KUBERNETES=v1.37 $(MAKE) test-e2e LIQO=0.9
	bin/lab down
	$(MAKE) test-stock
	bin/lab down
	$(MAKE) test-early
	bin/lab down

.PHONY: bench
bench: deps bin/lab ## Print how long decisions and negotiations take, and what the daemon holds and does with 1,000 providers and 1,000 namespaces.
	go test -p 1 -run '^$$' -bench . -benchtime 500x ./pkg/core/choice ./pkg/core/capacity ./pkg/core/placement ./pkg/controller/placementpolicy ./pkg/httpapi
	go test -run '^$$' -bench . -benchtime 100x ./pkg/trade/registry/store
	go test -run '^$$' -bench . -benchtime 300x ./pkg/trade/negotiation
	programs=$$(bin/lab build); \
	for benchmark in Memory Daemon/100 Daemon/1000; do \
		LIQO_BROKER_TEST_PROGRAMS=$$programs \
			go test -run '^$$' -bench "$$benchmark$$" -benchtime 1x -timeout 1h -v ./cmd/broker; \
	done; \
	LIQO_BROKER_TEST_PROGRAMS=$$programs go test -count=1 -timeout=10m -v -run '^TestProviderConcernsFew$$' ./cmd/broker

# It fails where the page or its server is slower, or holds more, than it may.
.PHONY: bench-ui
bench-ui: deps ui ui-modules bin/kubectl-liqo_broker bin/lab ## Print how the page shows 1,000 providers and 3,000 pods, and what it holds after BENCH_UI_MINUTES (1); then page and server with 30,000 pods.
	MODULES=$(CURDIR)/$(UI_MODULES) NODE_OPTIONS=--import=$(CURDIR)/ui/test/older.mjs node ui/test/bench.mjs
	programs=$$(bin/lab build --kubernetes $(KUBERNETES)); \
	LIQO_BROKER_TEST_REGISTRY=$(CURDIR)/bin LIQO_BROKER_TEST_PROGRAMS=$$programs \
		go test -count=1 -timeout=40m -v -run '^TestPage$$' ./test/scale

# It fails where a goal is missed that docs/trade/performance.md names.
.PHONY: bench-registry
bench-registry: deps bin/registry bin/connector bin/lab ## Print what a registry and a connector do and hold with 10,000 offers of 1,000 parties and 1,000 watchers, and a seller with 2,048 contracts at rest.
	programs=$$(bin/lab build --kubernetes $(KUBERNETES)); \
	LIQO_BROKER_TEST_REGISTRY=$(CURDIR)/bin LIQO_BROKER_TEST_PROGRAMS=$$programs \
		go test -count=1 -timeout=40m -v -run '^(TestRegistry|TestConnector|TestRest)$$' ./test/scale

# It fails where the goal is missed that docs/trade/performance.md names.
.PHONY: bench-trade
bench-trade: deps build images bin/lab bin/helm ## Print how long contracts between real clusters take until both have signed.
	go test -tags=e2e -count=1 -timeout=30m -v -run '^TestNegotiationSpeed$$' ./test/trade

# With LIQO=1.2 both fail where a goal is missed that docs/performance.md names.
.PHONY: bench-pods
bench-pods: deps build images bin/lab ## Print how long Deployments of 1, 10 and 30 pods take, local, one and two hops away, and what that costs; with LIQO=1.2 on that line of Liqo.
	LIQO_BROKER_LIQO=$(LIQO) go test -tags=e2e -count=1 -timeout=60m -v -run '^TestSpeed$$' ./test/e2e

.PHONY: bench-grants
bench-grants: deps build images bin/lab ## Print how long it takes until a consumer's node has what the broker offers; with LIQO=1.2 on that line of Liqo, station by station.
	LIQO_BROKER_LIQO=$(LIQO) go test -tags=e2e -count=1 -timeout=60m -v -run '^TestGrantsReachNodes$$' ./test/e2e

# It fails where the goal is missed that docs/performance.md names.
.PHONY: bench-gateway
bench-gateway: deps build images bin/lab ## Print how long requests take, direct and by a broker whose node is busy, with the share of Liqo's gateway and without.
	go test -tags=e2e -count=1 -timeout=30m -v -run TestBusyNode ./test/e2e

# Flags of bin/conformance choose a part: '-distances=two-hops', '-focus=sig-apps', '-within=30m', and '-rest' for what has no result yet.
CONFORMANCE_FLAGS ?=

.PHONY: test-conformance
test-conformance: conformance-programs ## Run Kubernetes' conformance tests with pods local, one and two hops away, with LIQO=1.2 on that line of Liqo, and write docs/conformance.md.
	bin/demo up --liqo $(LIQO)
	bin/conformance -liqo $(LIQO) -programs $(CONFORMANCE) -reports $(CONFORMANCE)/reports -page docs/conformance.md $(CONFORMANCE_FLAGS)
	bin/lab down

# The programs of the tests, and of their pods, are built without the C library: pods run them on top of nothing.
.PHONY: conformance-programs
conformance-programs: deps build images bin/lab bin/demo bin/conformance
	@build/deps.sh $(CONFORMANCE_PACKAGES)
	CGO_ENABLED=0 go build -C test/conformance/kubernetes -p 2 -trimpath -ldflags '-s -w' -o $(CURDIR)/$(CONFORMANCE)/ \
		k8s.io/kubernetes/test/images/agnhost k8s.io/kubernetes/test/images/nonewprivs github.com/onsi/ginkgo/v2/ginkgo
	CGO_ENABLED=0 go test -C test/conformance/kubernetes -p 2 -trimpath -ldflags '-s -w' -c -o $(CURDIR)/$(CONFORMANCE)/e2e.test \
		k8s.io/kubernetes/test/e2e
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(CONFORMANCE)/pause ./test/lab/programs/pause

.PHONY: lint
lint: $(GOLANGCI) $(PATCHED) ## Run the linters, and check the API against the conventions of Kubernetes.
	go build -C build/tools -buildvcs=false -o $(CURDIR)/.build/bin/constants ./constants && .build/bin/constants build cmd pkg test
	$(GOLANGCI) run ./...
	cd cmd/virtual-kubelet && $(CURDIR)/$(GOLANGCI) run ./...
	cd test/chart && $(CURDIR)/$(GOLANGCI) run ./...
	cd build/release && $(CURDIR)/$(GOLANGCI) run ./...
	cd test/liqo1 && $(CURDIR)/$(GOLANGCI) run ./...
	go build -C build/tools -buildvcs=false -o $(CURDIR)/.build/bin/apilint ./apilint && .build/bin/apilint -test=false ./pkg/api/...

# In neither verify nor test, since it asks the world: TestAdvisories has what is known here already.
.PHONY: advisories
advisories: $(PATCHED) ## Ask the database of Go's vulnerabilities which ones the programs reach. It needs a network.
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./cmd/...
	cd cmd/virtual-kubelet && go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

# What one of the programs reaches, and what makes the documents of the APIs. Only a change of the source has it looked for again: it takes a minute.
.PHONY: deadcode
deadcode: .build/deadcode ## Refuse functions that no program reaches, but those of build/deadcode.txt, which says why.

.build/deadcode: build/deadcode.txt go.mod build/tools/go.mod $(PATCHED) $(shell find cmd pkg build/openapi -name '*.go' ! -name '*_test.go' ! -name 'zz_generated*' ! -name '*.pb.go')
	go build -C build/tools -buildvcs=false -o $(CURDIR)/.build/bin/deadcode golang.org/x/tools/cmd/deadcode
	printf 'go %s\nuse ..\nuse ../cmd/virtual-kubelet\n' "$$(sed -n 's/^go //p' go.mod)" > .build/go.work
	GOWORK=$(CURDIR)/.build/go.work .build/bin/deadcode -f '{{range .Funcs}}{{printf "%s %s\n" $$.Path .Name}}{{end}}' \
		./cmd/... ./cmd/virtual-kubelet ./build/openapi | sed 's,^$(PACKAGE)/,,' | sort > $@.found
	diff -u --label 'allowed, in build/deadcode.txt' <(sed -n 's/^\([^#][^ ]* [^ ]*\) .*/\1/p' build/deadcode.txt | sort) --label 'reached by no program' $@.found
	@mv $@.found $@

# The linters have vet among them: only the tools of the build, which they do not see, have it by itself.
.PHONY: verify
verify: deps generate lint deadcode ## Check that generated files and go.mod are up to date, that everything compiles, and the style.
	go mod tidy
	go mod tidy -C cmd/virtual-kubelet
	go mod tidy -C test/chart
	go mod tidy -C build/release
	go mod tidy -C test/liqo1
	go vet -C build/tools ./...
	git diff --exit-code -- go.mod go.sum cmd/virtual-kubelet test/chart test/liqo1 build/release deploy/crds deploy/connector deploy/chart deploy/chart-agent deploy/chart-connector deploy/chart-registry deploy/liqo/component pkg/api pkg/liqo/v1/api pkg/liqo/v09/resourcereader pkg/remoteipam/remoteipamv1 docs/api test/apiclient pkg/ui/dist ui/src/api.ts ui/src/trade.ts

##@ Help

.PHONY: help
help: ## Show this text.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Go knows better than make which source files a program is made of, and builds only what changed.
.PHONY: FORCE
FORCE:

bin/lab: FORCE
	CGO_ENABLED=0 go build -trimpath -o $@ ./test/lab/cmd/lab

bin/demo: FORCE
	CGO_ENABLED=0 go build -trimpath -o $@ ./test/demo

# Of the version with whose library the chart is tested: the journeys run what the documents say.
bin/helm: FORCE
	CGO_ENABLED=0 go build -C test/chart -trimpath -ldflags '-s -w' -o $(CURDIR)/$@ helm.sh/helm/v3/cmd/helm

$(JOURNEYS): FORCE
	CGO_ENABLED=0 go build -trimpath -o $@ ./test/journeys

bin/conformance: FORCE
	CGO_ENABLED=0 go build -trimpath -o $@ ./test/conformance

bin/virtual-kubelet: $(PATCHED) FORCE
	cd cmd/virtual-kubelet && $(GO_BUILD) -o $(CURDIR)/$@ .

bin/%: FORCE
	$(GO_BUILD) -o $@ ./cmd/$*

bin/images/liqo-broker.tar: bin/broker
bin/images/liqo-broker-vk.tar: bin/virtual-kubelet
bin/images/liqo-broker-network-manager.tar: bin/network-manager
bin/images/liqo-broker-connector.tar: bin/connector
bin/images/liqo-broker-registry.tar: bin/registry
bin/images/%.tar: $(RELEASE)
	@mkdir -p $(@D)
	$(RELEASE) image -version '$(VERSION)' -revision '$(REVISION)' -epoch '$(SOURCE_DATE_EPOCH)' \
		-name $(REPOSITORY)/$*:$(TAG) -binary $(filter-out $(RELEASE),$^) -o $@

# What clusters of the lab have only in the full run.
bin/metrics-server: FORCE
	CGO_ENABLED=0 go build -C test/lab/metricsserver -trimpath -buildvcs=false -ldflags '-s -w' -o $(CURDIR)/$@ sigs.k8s.io/metrics-server/cmd/metrics-server

$(RELEASE): FORCE
	CGO_ENABLED=0 go build -C build/release -trimpath -buildvcs=false -o $(CURDIR)/$@ .

$(PATCHED): go.mod go.sum $(wildcard patches/*.patch build/patch/*.go)
	go run ./build/patch -patches patches -out .build/patched

.build/bin/protoc-gen-go: go.mod
	go build -o $@ google.golang.org/protobuf/cmd/protoc-gen-go

.build/bin/protoc-gen-go-grpc:
	GOBIN=$(CURDIR)/$(@D) go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@$(GRPC_PLUGIN_VERSION)

.build/bin/oapi-codegen:
	GOBIN=$(CURDIR)/$(@D) go install github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$(OAPI_CODEGEN_VERSION)

$(GOLANGCI):
	GOBIN=$(CURDIR)/$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
