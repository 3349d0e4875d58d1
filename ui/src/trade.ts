// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Made of docs/api/trade.yaml by build/tools/ui. DO NOT EDIT.

export interface Asked {
  end: string;
  /** Another plan; empty for the same. */
  plan?: string;
  price: Price;
  resources?: Record<string, string>;
}

export interface Cluster {
  id: string;
  name?: string;
}

export interface Condition {
  message?: string;
  reason: string;
  since: string;
  status: string;
  type: string;
}

export interface Contract {
  /** What these are, of a contract that is in force. */
  asked?: Asked;
  cluster?: Cluster;
  conditions?: Condition[];
  contractID?: string;
  /** Missing if it cannot be said. */
  cost?: Cost;
  created: string;
  /** What this side can do with it now: end, resize, renew, approve, refuse, suspend, resume. */
  deeds: string[];
  end?: string;
  /** This cluster wants it to end. */
  ending?: boolean;
  /** That of the Purchase or Sale. */
  name: string;
  nodes?: string[];
  offer?: string;
  paidUntil?: string;
  /** Who is at the other side. */
  party: Party;
  plan?: string;
  /** Pods that still have to leave. */
  podsLeft?: number;
  price?: Price;
  promise?: Promise;
  ready: Condition;
  renew?: boolean;
  /** The CapacityRequest that has bought. */
  request?: string;
  resources?: Record<string, string>;
  sold: boolean;
  start?: string;
  /** Empty if the seller has not answered yet. */
  state?: string;
  steps?: Step[];
  /** This cluster, which sells, wants to grant nothing. */
  suspended?: boolean;
  terms?: Document;
  /** Changes with what people of this cluster want of it. */
  version: string;
  /** The number of the terms about which this cluster has to decide. */
  waits?: number;
}

export interface Cost {
  /** What the buyer allows. */
  maxTotal?: Money;
  /** A sum for each currency; none if nothing is owed. */
  soFar?: Money[];
  /** If it goes on as it is. */
  toTheEnd?: Money[];
}

export interface Deed {
  plan?: string;
  /** What the other side is told. */
  reason?: string;
  resources?: Record<string, string>;
  /** The terms that are approved or refused. */
  terms?: number;
  until?: string;
  /** That of the contract as it was seen. */
  version: string;
}

export interface Document {
  sha256?: string;
  url: string;
}

export interface Found {
  /** Parties and offers that are not shown: they are over, or not what their owners have signed. */
  leftOut?: number;
  /** How many further plans there are. */
  more?: number;
  /** At most 250. */
  plans: PlanForSale[];
}

export interface Market {
  /** Parties and offers that are not shown: they are over, or not what their owners have signed. */
  leftOut?: number;
  /** How many further sellers there are. */
  more?: number;
  offers: number;
  /** Where something is for sale; at most 250. */
  regions?: string[];
  /** Changes with what is for sale. */
  revision: string;
  /** This cluster, if it has signed an offer. */
  self?: Party;
  /** At most 250. */
  sellers: Seller[];
}

export interface Measured {
  at: string;
  by: Party;
  name: string;
  samples: number;
  unit?: string;
  value: number;
}

export interface Money {
  /** A decimal number, exact. */
  amount: string;
  /** ISO 4217. */
  currency: string;
}

export interface Need {
  architectures?: string[];
  /** As 24h. */
  duration?: string;
  /** In CEL, about offer and plan. */
  expression?: string;
  /** As 0.5 EUR/h. */
  maxPrice?: string;
  regions?: string[];
  /** At least. */
  resources?: Record<string, string>;
  /** Party IDs. */
  sellers?: string[];
}

export interface Order {
  architectures?: string[];
  /** As 24h. */
  duration?: string;
  /** In CEL, about offer and plan. */
  expression?: string;
  /** As 0.5 EUR/h. */
  maxPrice?: string;
  /** As 100 EUR. */
  maxTotal?: string;
  /** That of the CapacityRequest or Purchase. */
  name: string;
  /** PARTY/OFFER/PLAN; without it, whatever is the best choice. */
  reference?: string;
  regions?: string[];
  renew?: boolean;
  /** At least. */
  resources?: Record<string, string>;
  /** Party IDs. */
  sellers?: string[];
}

export interface Ordered {
  kind: "Purchase" | "CapacityRequest";
  name: string;
  /** At most 5; the first would be bought now. */
  would: PlanForSale[];
}

export interface OwnOffer {
  conditions?: Condition[];
  created: string;
  name: string;
  /** Whether it is for sale. */
  open: boolean;
  /** What is decided where none is. */
  otherwise?: string;
  plans: OwnPlan[];
  region?: string;
  revision?: number;
  /** The first whose expression is true decides. */
  rules?: Rule[];
  /** How many contracts hold something of it. */
  sold: number;
  title: string;
  validUntil?: string;
}

export interface OwnPlan {
  id: string;
  left: number;
  price: Price;
  range?: Range;
  resources?: Record<string, string>;
  sold: number;
  /** How many contracts there may be at a time; missing if only the capacity counts. */
  stock?: number;
  title?: string;
}

export interface Party {
  id: string;
  /** What it calls itself. It is not distinct. */
  name: string;
  /** The beginning of the ID. */
  short: string;
}

export interface PlanForSale {
  /** Whether a registry has heard of the seller recently. */
  alive: boolean;
  architectures?: string[];
  /** Of a plan with a range, the part of the price that does not depend on the amount. */
  base: Price;
  description?: string;
  /** What a buyer gets for what it needs. */
  granted: Record<string, string>;
  issued: string;
  kind: "Cluster" | "Broker";
  labels?: Record<string, string>;
  /** How many more contracts there could be when the offer was signed. */
  left: number;
  maxDuration?: string;
  measured?: Measured[];
  minDuration?: string;
  /** For how long a seller that ends it early goes on giving, and a buyer goes on paying. */
  notice?: string;
  offer: string;
  plan: string;
  planTitle?: string;
  /** What that costs. */
  price: Price;
  promise?: Promise;
  range?: Range;
  /** PARTY/OFFER/PLAN. */
  reference: string;
  region?: string;
  registries: string[];
  seller: Party;
  terms?: Document;
  title: string;
  /** What that costs for as long as it is needed. */
  total?: Money;
  type?: string;
  validUntil: string;
  zone?: string;
}

export interface Price {
  /** A decimal number, exact. */
  amount: string;
  /** ISO 4217. */
  currency: string;
  /** As ISO 8601 writes it. */
  period: string;
  /** For people, as 0.1 EUR/h. */
  text: string;
}

export interface Promise {
  /** Percent of a month. */
  availability?: string;
  /** Percent of the price that is not owed if it is broken. */
  credit?: string;
  document?: Document;
}

export interface Range {
  max: Record<string, string>;
  min: Record<string, string>;
  step: Record<string, string>;
  /** For the period of the price, in its currency. */
  unitPrices?: Record<string, UnitPrice>;
}

export interface Registry {
  conditions?: Condition[];
  created: string;
  /** Until when it takes this cluster for alive. */
  leaseUntil?: string;
  name: string;
  offers: number;
  parties: number;
  /** Whether the offers of this cluster are published there. */
  publish: boolean;
  url: string;
}

export interface Request {
  created: string;
  duration: string;
  expression?: string;
  maxPrice?: Price;
  maxTotal?: Money;
  name: string;
  /** The Purchase that serves it. */
  purchase?: string;
  ready: Condition;
  regions?: string[];
  renew?: boolean;
  resources: Record<string, string>;
}

export interface Rule {
  /** In CEL. */
  expression: string;
  verdict: "Accept" | "Ask" | "Deny";
}

export interface Seller {
  /** Whether a registry has heard of it recently. */
  alive: boolean;
  id: string;
  /** What it calls itself. It is not distinct. */
  name: string;
  offers: number;
  regions?: string[];
  /** The beginning of the ID. */
  short: string;
}

export interface Step {
  at: string;
  event: string;
  from?: string;
  reason?: string;
  terms: number;
  to: string;
}

export interface UnitPrice {
  amount: string;
  per: string;
}
