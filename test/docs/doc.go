// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs reads the commands out of the project's documents and runs them, so that what a person copies from a page works.
//
// A block of commands in a page is preceded by a comment, which a reader of the page does not see:
//
//	<!-- run on broker -->                                      run it there, with the other blocks of the page, in their order
//	<!-- run on broker in TestFrontDoor -->                     the same, but that journey runs it when it is its turn
//	<!-- run on provider-a, provider-b in InstallMarket -->     on each of them, by what sets the clusters of journeys up
//	<!-- not run: why not -->                                   nobody runs it
//	<!-- prints -->                                             what the block before it prints: Shape compares
//
// and `<!-- commands run on broker -->` or `<!-- commands not run: why not -->` say so for all blocks that follow and have no comment of
// their own. Commands in running text and in tables have no comment: a test has a table of who runs which. The package does not know what
// the commands do, or what clusters there are.
package docs
