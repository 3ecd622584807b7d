#include "sim/schedule/collective_choice.h"

#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <boost/algorithm/string/predicate.hpp>
#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {
namespace {

template <typename Value>
struct NamedValue {
  Value value = {};
  const char* name = "";
  const char* nccl_name = "";
};

// They are in the order of the enumerations.
constexpr NamedValue<AlgorithmId> kAlgorithms[] = {
    {AlgorithmId::kAuto, "auto"},
    {AlgorithmId::kRing, "ring", "Ring"},
    {AlgorithmId::kRingBoth, "ring-both"},
    {AlgorithmId::kTree, "tree", "Tree"},
    {AlgorithmId::kHalvingDoubling, "halving-doubling"},
    {AlgorithmId::kDoubling, "doubling"},
    {AlgorithmId::kDirect, "direct"},
    {AlgorithmId::kPairwise, "pairwise"},
    {AlgorithmId::kBruck, "bruck"},
    {AlgorithmId::kPxn, "pxn"},
    {AlgorithmId::kDeepEp, "deepep"},
    {AlgorithmId::kNvls, "nvls", "NVLS"},
    {AlgorithmId::kNvlsTree, "nvls-tree", "NVLSTree"},
    {AlgorithmId::kCollnet, "collnet", "CollnetDirect"},
    {AlgorithmId::kPat, "pat", "PAT"},
    {AlgorithmId::kHierarchical, "hierarchical"},
    {AlgorithmId::kBucket, "bucket"},
    {AlgorithmId::kChain, "chain"},
    {AlgorithmId::kCopy, "copy"},
};
constexpr size_t kNamed = std::size(kAlgorithms) - 1;  // nobody asks for copies by name
constexpr NamedValue<Protocol> kAllProtocols[] = {{Protocol::kLL, "ll", "LL"},
                                                  {Protocol::kLL128, "ll128", "LL128"},
                                                  {Protocol::kSimple, "simple", "Simple"},
                                                  {Protocol::kNone, "none"},
                                                  {Protocol::kAuto, "auto"}};

template <typename Value>
Value Parsed(const char* what, std::string_view name, std::span<const NamedValue<Value>> rows) {
  std::vector<std::string> names;
  for (const NamedValue<Value>& row : rows) {
    if (!name.empty() && (boost::iequals(name, row.name) || boost::iequals(name, row.nccl_name)))
      return row.value;
    names.emplace_back(row.name);
  }
  const std::string wanted(name);
  throw Error(fmt::format("unknown {} \"{}\"{}", what, wanted, KnownNames(wanted, names)));
}

}  // namespace

const char* Name(AlgorithmId algorithm) { return kAlgorithms[static_cast<size_t>(algorithm)].name; }
const char* NcclName(AlgorithmId algorithm) {
  return kAlgorithms[static_cast<size_t>(algorithm)].nccl_name;
}
AlgorithmId ParseAlgorithm(std::string_view name) {
  return Parsed<AlgorithmId>("algorithm", name, std::span(kAlgorithms).first(kNamed));
}

const char* Name(Protocol protocol) { return kAllProtocols[static_cast<size_t>(protocol)].name; }
Protocol ParseProtocol(std::string_view name) {
  return Parsed<Protocol>("protocol", name, kAllProtocols);
}

}  // namespace rehearse
