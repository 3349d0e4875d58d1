-- Copyright The liqo-broker Authors.
-- SPDX-License-Identifier: Apache-2.0

-- The same text runs on SQLite and on PostgreSQL. Times are microseconds since 1970 (0: none), truth is 0 or 1. A migration that was
-- released is never changed; the next file continues it. Nothing goes back: restore the backup that was made before.

-- +goose Up
CREATE TABLE registry (
    id          BIGINT PRIMARY KEY CHECK (id = 1),
    eras        TEXT   NOT NULL, -- an array in JSON
    revision    BIGINT NOT NULL, -- Writers lock this row before they read.
    compacted   BIGINT NOT NULL  -- Deletions up to this revision may be forgotten.
);
INSERT INTO registry (id, eras, revision, compacted) VALUES (1, '[]', 0, 0);

CREATE TABLE parties (
    id                TEXT   NOT NULL PRIMARY KEY,
    state             TEXT   NOT NULL CHECK (state IN ('Pending', 'Approved', 'Revoked')),
    announcement      TEXT   NOT NULL,
    revision          BIGINT NOT NULL CHECK (revision > 0),
    key_chain         TEXT   NOT NULL, -- an array in JSON
    current_key       TEXT   NOT NULL UNIQUE, -- its fingerprint; that of the first key is the ID
    name              TEXT   NOT NULL,
    endpoint          TEXT   NOT NULL,
    enrolled_by       TEXT   NOT NULL,
    enrolled_at       BIGINT NOT NULL,
    network           TEXT   NOT NULL, -- from which it has announced itself first
    lease_until       BIGINT NOT NULL,
    silent            BIGINT NOT NULL CHECK (silent IN (0, 1)),
    registry_revision BIGINT NOT NULL UNIQUE
);
CREATE INDEX parties_lease ON parties (lease_until);
CREATE INDEX parties_network ON parties (network, enrolled_at);

CREATE TABLE offers (
    party             TEXT   NOT NULL REFERENCES parties (id),
    id                TEXT   NOT NULL CHECK (id <> ''),
    keys              BIGINT NOT NULL, -- the length of the chain at whose end is the key that has signed it
    revision          BIGINT NOT NULL CHECK (revision > 0),
    jws               TEXT   NOT NULL,
    digest            TEXT   NOT NULL,
    valid_until       BIGINT NOT NULL,
    registry_revision BIGINT NOT NULL UNIQUE,
    PRIMARY KEY (party, id)
);
CREATE INDEX offers_validity ON offers (valid_until);

-- What is gone, until it is compacted: an offer, or (offer = '') a party. An offer is here or in offers, never in both.
CREATE TABLE deletions (
    party             TEXT   NOT NULL,
    offer             TEXT   NOT NULL,
    keys              BIGINT NOT NULL,
    revision          BIGINT NOT NULL,
    digest            TEXT   NOT NULL,
    withdrawn         BIGINT NOT NULL CHECK (withdrawn IN (0, 1)), -- Its owner deleted it: the same document does not come back.
    registry_revision BIGINT NOT NULL UNIQUE,
    PRIMARY KEY (party, offer)
);

CREATE TABLE tokens (
    digest     TEXT   NOT NULL PRIMARY KEY,
    uses       BIGINT NOT NULL CHECK (uses >= 0),
    expires_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    comment    TEXT   NOT NULL
);
