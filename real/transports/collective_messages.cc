#include "real/transports/collective_messages.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm.h"
#include "collectives/algorithms/steps.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// Pipelines cut what they pass on into pieces of about this many bytes, up to this many pieces.
constexpr uint64_t kPieceBytes = uint64_t{256} << 10;
constexpr uint64_t kMostPieces = 64;

// These algorithms can have their positions in the order of the group's members.
constexpr AlgorithmId kPlainAlgorithms[] = {
    AlgorithmId::kRing,     AlgorithmId::kTree,   AlgorithmId::kHalvingDoubling,
    AlgorithmId::kDoubling, AlgorithmId::kDirect, AlgorithmId::kPairwise,
    AlgorithmId::kBruck,    AlgorithmId::kPat,    AlgorithmId::kChain};

const Algorithm& AlgorithmOf(const Collective& collective) {
  if (collective.algorithm == AlgorithmId::kAuto)
    return FindAlgorithm(UsualAlgorithm(collective.kind));
  const Algorithm& algorithm = FindAlgorithm(collective.algorithm);
  CheckKind(algorithm, collective.kind);
  if (std::ranges::find(kPlainAlgorithms, algorithm.id) == std::end(kPlainAlgorithms)) {
    std::vector<std::string> plain;
    for (const AlgorithmId id : kPlainAlgorithms) plain.emplace_back(Name(id));
    throw Error(
        fmt::format("algorithm \"{}\" follows the cluster's links and is only simulated; CPU ranks "
                    "run {}, or auto",
                    algorithm.name(), fmt::join(plain, ", ")));
  }
  return algorithm;
}

std::vector<uint32_t> ChunksOf(const Chunks& chunks) {
  std::vector<uint32_t> list;
  for (uint32_t k = 0; k < chunks.count; ++k) list.push_back(chunks.At(0, k));
  return list;
}

}  // namespace

StepMessages MessagesOf(const Collective& collective, uint32_t size, uint32_t member,
                        uint64_t bytes) {
  const Algorithm& algorithm = AlgorithmOf(collective);
  StepInput input;
  input.kind = collective.kind;
  input.extents = {size};
  // Trees connect machines, chains the ranks inside them: here every rank is a machine.
  if (algorithm.id == AlgorithmId::kTree) input.extents = {1, size};
  if (algorithm.pipelined.Has(collective.kind)) {
    input.pieces = static_cast<uint32_t>(std::clamp<uint64_t>(bytes / kPieceBytes, 1, kMostPieces));
  }
  const uint32_t root = collective.root;  // it has position 0
  CHECK_LT(root, size);
  const auto member_at = [&](uint32_t position) { return (position + root) % size; };
  const uint32_t position = (member + size - root) % size;

  StepMessages result;
  result.chunks = ChunkCount(algorithm, input);
  if (input.kind == CollectiveKind::kAllGather || input.kind == CollectiveKind::kReduceScatter) {
    for (uint32_t chunk = 0; chunk < result.chunks; ++chunk) {
      result.blocks.push_back(member_at(BlockOf(algorithm, input, position, chunk).to));
    }
  }
  for (const Leg& leg : MessagesOf(algorithm, input, position)) {
    const bool reduces = leg.combine == Combine::kAdd;
    if (leg.from == position) {
      result.messages.push_back({leg.step, true, member_at(leg.to), false, ChunksOf(leg.read)});
    }
    if (leg.to == position) {
      result.messages.push_back(
          {leg.step, false, member_at(leg.from), reduces, ChunksOf(leg.write)});
    }
  }
  return result;
}

}  // namespace rehearse
