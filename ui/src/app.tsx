// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The page: takes its code out of the address, begins to watch, and shows the screen that the address names.

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ActivityScreen } from "./activity";
import { ConsumerScreen, ConsumersScreen } from "./consumers";
import { DrainScreen } from "./drain";
import { count, plain, when } from "./format";
import { LoadedScreen } from "./load";
import { MapScreen } from "./map/screen";
import { OverviewScreen } from "./overview";
import { Command, Head, Icon, Needs, State } from "./parts";
import { kubectl, narrow, now, route, said, say, setTheme, theme } from "./place";
import { PoliciesScreen, PolicyScreen } from "./policies";
import { ProviderScreen, ProvidersScreen } from "./providers";
import { codeIn, href, parse } from "./routes";
import { askForLink, connection, forgetToken, hosted, kept, me, missing, reopen, start, store, useToken } from "./server";
import type { Kind } from "./store";
import { TrialScreen } from "./trial";
import { WorkloadScreen, WorkloadsScreen } from "./workloads";

const entries = [
  { path: "", name: "Overview", icon: "overview" }, { path: "map", name: "Map", icon: "map" }, { path: "providers", name: "Providers", icon: "providers" },
  { path: "consumers", name: "Consumers", icon: "consumers" }, { path: "workloads", name: "Workloads", icon: "workloads" },
  { path: "policies", name: "Policies", icon: "policies" },
  { path: "activity", name: "Activity", icon: "activity" },
  { path: "market", name: "Market", icon: "market" }, { path: "contracts", name: "Contracts", icon: "contracts" },
  { path: "offers", name: "Own offers", icon: "offers" }, { path: "registries", name: "Registries", icon: "registries" },
] as const;

/** The kinds that entries are about which are not called like them. */
const kindOf: Record<string, Kind> = { map: "providers", offers: "ownoffers" };

/** The entries of trade. Most clusters have none: they come when it is known that this one has. */
const ofTrade = ["market", "contracts", "offers", "registries"];

/** What a consumer shows of its own pods. */
const ofConsumer = ["map", "workloads"];

/** Whether the cluster is a consumer, or neither that nor anything else: what trades and has no pods elsewhere is shown as that. */
function consumes(): boolean {
  return !!me.value?.consumes && (!has("contracts") || !!store.list("status")[0]?.brokers || store.all("flows").size > 0);
}

/** Whether a cluster has what an entry is about; what one may not see is there, and says so. */
function has(path: string): boolean {
  if (!me.value) return !ofTrade.includes(path);
  if (me.value.consumes && ofConsumer.includes(path)) return consumes();
  return path === "" || missing(kindOf[path] ?? (path as Kind))?.length !== 0;
}

/** The map, of what the page knows; what one may not see is unknown to it. */
function TheMap() {
  const of = <K extends Kind>(kind: K) => (missing(kind) ? undefined : store.list(kind));
  const [providers, consumers] = [of("providers"), of("consumers")];
  const clusters = providers && consumers && store.synced.value && { providers: providers.length, consumers: consumers.length };
  const lacks = (["providers", "consumers", "links", "flows"] as const).flatMap((kind) => missing(kind) ?? []);
  return (
    <>
      <Head title="Map" hint={clusters && `${count(clusters.consumers, "consumer")} and ${count(clusters.providers, "provider")}`} command={kubectl("providers", "-o", "wide")} />
      <Needs kinds={[]}>{() => (
        <MapScreen providers={providers} consumers={consumers} links={of("links")} flows={of("flows")} missing={[...new Set(lacks)]}
          brokerName={plain(me.value?.broker?.name) || "broker"} selected={route.value.query.selected} onSelect={(key) => narrow({ selected: key })}
          ago={(time) => when(time, now.value)} filter={route.value.query.q ?? ""} />
      )}</Needs>
    </>
  );
}

function Screen() {
  const [first = "", id, more] = route.value.parts;
  if (me.value?.consumes && (first ? ofConsumer.includes(first) : consumes())) return <LoadedScreen of="Own" parts={route.value.parts} />;
  switch (first) {
    case "": return (has("status") && !me.value?.consumes) || !has("contracts") ? <OverviewScreen /> : <LoadedScreen of="Trade" parts={[]} />;
    case "market": case "contracts": case "offers": case "registries": return <LoadedScreen of="Trade" parts={route.value.parts} />;
    case "map": return <TheMap />;
    case "providers": return id && more === "drain" ? <DrainScreen key={id} id={id} /> : id ? <ProviderScreen key={id} id={id} /> : <ProvidersScreen />;
    case "consumers": return id ? <ConsumerScreen key={id} id={id} /> : <ConsumersScreen />;
    case "workloads": return id ? <WorkloadScreen key={id} id={id} /> : <WorkloadsScreen />;
    case "activity": return <ActivityScreen />;
    case "policies": if (id === "new" && !more || more === "edit") return <TrialScreen key={`${id}/edit`} {...(more ? { id } : {})} />;
      return id ? <PolicyScreen key={id} id={id} /> : <PoliciesScreen />;
  }
  return <div class="empty"><h1 tabIndex={-1}>There is nothing at this address.</h1><a href="#/">Overview</a></div>;
}

/** Of when a saved page is. */
function SavedAt() {
  const at = new Date(kept!.at);
  const words = at.toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
  return <span class="chip saved" title={`This page shows what was there at ${at.toLocaleString()}${kept!.hidden ? "; other names stand for those that were there" : ""}.`}>saved {words}</span>;
}

function Stream() {
  if (SAVED) return <SavedAt />;
  const { state, detail, since } = connection.value;
  const words = { starting: "connecting", live: "live", stale: `stale since ${new Date(since).toLocaleTimeString()}`, closed: "closed", saved: "" };
  return (
    <span class="stream" role="status" title={detail ?? `Last heard ${when(new Date(since).toISOString(), now.value)}`}>
      <State tone={state === "live" ? "ok" : state === "starting" ? "unknown" : "problem"}>{words[state]}</State>
    </span>
  );
}

/** How a field of text hides what is in it. Browsers offer to keep what was in one of passwords, whatever it says of that. */
const masked = "-webkit-text-security: disc";

/** Asks for a token. It is in no state of the page, and in the field only until it is given. */
function TokenForm({ detail }: { detail: string }) {
  const give = (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("token") as HTMLInputElement;
    const token = field.value.trim();
    field.value = "";
    if (/^[\x21-\x7e]+$/.test(token)) useToken(token);
    else say("This is no token.");
  };
  return (
    <div class="broken">
      <div role="alert"><State tone="problem">{detail}</State></div>
      <Command line="kubectl create token NAME --namespace NAMESPACE --audience liqo-broker --duration 8h" />
      <form aria-label="Token" autocomplete="off" onSubmit={give}>
        <label>Token <input name="token" type={(CSS.supports(masked) ? "text" : "password") as "text"} style={masked} autocomplete="off" autocapitalize="off" spellcheck={false} required /></label>
        <button type="submit">Go on</button>
      </form>
    </div>
  );
}

/** When the token expires, which is said loudly before it does. */
function Expiry() {
  const expires = me.value?.expires;
  if (!hosted || !expires) return null;
  const at = new Date(expires);
  const left = Math.floor((at.getTime() - now.value) / 60_000);
  return left < 15
    ? <span class="chip" role="status"><State tone="problem">{left < 1 ? "The token expires" : `The token expires in ${left} min`}</State></span>
    : <span class="chip" title={`The token expires ${at.toLocaleString()}`}>{`until ${at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`}</span>;
}

function Broken() {
  const { state, detail } = connection.value;
  if (state !== "stale" && state !== "closed") return null;
  if (hosted && state === "closed") return <TokenForm detail={detail ?? ""} />;
  return (
    <div class="broken" role="alert">
      <State tone="problem">{detail}{state === "closed" ? " Open the page again:" : " Trying again."}</State>
      {state === "closed" && <Command line={reopen} />}
      {state === "closed" && <button type="button" onClick={() => void askForLink().then(say)}>Show a link in its terminal</button>}
    </div>
  );
}

function App() {
  const main = useRef<HTMLElement>(null);
  const filter = useRef<HTMLInputElement>(null);
  const path = route.value.parts.join("/");
  const seen = useRef(path);
  useEffect(() => {
    const title = main.current?.querySelector("h1");
    document.title = `${title?.textContent ?? "liqo-broker"} – ${plain((me.value?.broker ?? me.value?.cluster)?.name ?? me.value?.context ?? "liqo-broker")}`;
    if (seen.current !== path) {
      seen.current = path;
      main.current?.scrollTo(0, 0);
      scrollTo(0, 0);
      title?.focus(); // A reader of the screen hears where the link led.
    }
  }, [path, me.value]);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName) && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        filter.current?.focus();
      } else if (event.key === "Escape" && at === filter.current) narrow({ q: "" });
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const skip = (event: Event) => {
    event.preventDefault();
    main.current?.focus();
  };
  const who = me.value;
  return (
    <div class={`page ${connection.value.state}`}>
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <nav class="rail" aria-label="Screens">
        <p class="brand" title={plain((who?.broker ?? who?.cluster)?.id)}>{plain((who?.broker ?? who?.cluster)?.name) || "liqo-broker"}</p>
        <ul>
          {entries.filter((entry) => has(entry.path)).map((entry) => (
            <li key={entry.path}>
              <a href={href(entry.path ? [entry.path] : [])} aria-current={(route.value.parts[0] ?? "") === entry.path ? "page" : undefined}>
                <Icon of={entry.icon} /><span>{entry.name}</span>
              </a>
            </li>
          ))}
        </ul>
        <p class="foot muted">{plain(who?.version)} {!SAVED && <a href="licences.txt">Licences</a>}</p>
      </nav>
      <header class="top">
        <label class="filter">
          <span class="hidden">Filter</span>
          <input ref={filter} type="search" placeholder="Filter" autocomplete="off" spellcheck={false} value={route.value.query.q ?? ""}
            onInput={(event) => narrow({ q: event.currentTarget.value })} />
          <kbd aria-hidden="true">/</kbd>
        </label>
        <Stream />
        <Expiry />
        {hosted && who && <button type="button" class="small" title="This tab forgets it, and what it has read." onClick={forgetToken}>Forget token</button>}
        {who?.readOnly && <span class="chip" title="This page was opened with --read-only.">read-only</span>}
        {who && <span class="who cut" title={`The cluster knows you as ${plain(who.name)}`}>{plain(who.name)}</span>}
        <label class="theme"><span class="hidden">Theme</span>
          <select value={theme.value} onChange={(event) => setTheme(event.currentTarget.value)}>
            <option value="auto">auto</option><option value="light">light</option><option value="dark">dark</option>
          </select>
        </label>
      </header>
      <main id="main" ref={main} tabIndex={-1}><Broken /><div class="content"><Screen /></div></main>
      <div class="said" role="status" aria-live="polite">{said.value && <p>{said.value}</p>}</div>
    </div>
  );
}

const code = SAVED || hosted ? undefined : codeIn(location.hash);
if (code) {
  history.replaceState(null, "", "#" + code.to);
  route.value = parse(location.hash);
}
setTheme(theme.value);
render(<App />, document.body);
void start(code?.code);
