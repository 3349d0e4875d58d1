// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Which screen of trade an address is.

import { ContractScreen, ContractsScreen, RequestScreen } from "./contracts";
import { MarketScreen, PlanScreen } from "./market";
import { OffersScreen, RegistriesScreen, Summary, TradeOverview } from "./selling";

export function Screen({ parts }: { parts: string[] }) {
  const [first, ...rest] = parts;
  switch (first) {
    case "market": return rest.length === 3 ? <PlanScreen key={rest.join("/")} reference={rest.join("/")} /> : <MarketScreen />;
    case "contracts":
      if (rest.length < 2) return <ContractsScreen />;
      return rest[0] === "needs" ? <RequestScreen key={rest[1]} name={rest[1]!} /> : <ContractScreen key={rest.join("/")} side={rest[0]!} name={rest[1]!} />;
    case "offers": return <OffersScreen />;
    case "registries": return <RegistriesScreen />;
    case "summary": return <Summary />;
  }
  return <TradeOverview />;
}
