// Patterns that select links and devices of a cluster by name: what-if edits
// (topology/files/edits.h) and perturbations (scenarios/readers/perturbation.h) use them.
//
// Patterns are on vertex names: `*` is any text within one part of the name (between slashes), `**`
// any text at all, `?` one character that is not a slash; everything else stands for itself. A
// pattern selects every link with an end whose name matches, in both directions; "a->b" the links
// between a vertex that matches a and one that matches b, again in both directions unless
// `one_way`. Among devices it selects those that match.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// Whether a name matches a pattern; takes time in proportion to the product of their lengths.
bool MatchesPattern(std::string_view pattern, std::string_view name);

// Whether the pattern has a direction: "a->b".
bool HasDirection(std::string_view pattern);

// Reads a pattern; Error when it is empty.
std::string ReadSelector(const JsonReader& reader);

// Link indices and ranks, ascending. Throw Error at `place` when a pattern matches no vertex (no
// device), with "did you mean"; links may be none although vertices match.
std::vector<uint32_t> SelectLinks(const Cluster& cluster, const std::string& pattern, bool one_way,
                                  const Place& place);
std::vector<uint32_t> SelectRanks(const Cluster& cluster, const std::string& pattern,
                                  const Place& place);

}  // namespace rehearse
