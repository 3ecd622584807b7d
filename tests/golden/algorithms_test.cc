// Each algorithm on each small group: its messages, whose blocks they are, and its closed form at
// several paces, beside a golden record. Others check that the data arrive (tests/collectives).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/algorithms/algorithm.h"
#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "tests/golden/record.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace algorithms_test {

using Extents = std::vector<uint32_t>;

bool IsOnGrid(const Algorithm& algorithm) {
  const std::string name = algorithm.name();
  return name == "tree" || name == "nvls-tree" || name == "pxn" || name == "deepep" ||
         name == "collnet" || name == "hierarchical" || name == "bucket";
}

std::string TextOf(const Chunks& chunks) {
  std::string text;
  for (uint32_t i = 0; i < chunks.count; ++i) text += fmt::format("{},", chunks.At(0, i));
  return text;
}

std::string StepsText(const Algorithm& algorithm, const StepInput& input) {
  std::string text;
  const uint32_t everyone = input.ranks() + algorithm.switches(input);
  for (uint32_t position = 0; position < everyone; ++position) {
    for (const Leg& leg : MessagesOf(algorithm, input, position)) {
      text += fmt::format("{} {} {} {} {}>{};", leg.step, leg.from, leg.to,
                          static_cast<int>(leg.combine), TextOf(leg.read), TextOf(leg.write));
    }
  }
  const bool has_blocks = input.kind == CollectiveKind::kAllGather ||
                          input.kind == CollectiveKind::kReduceScatter ||
                          input.kind == CollectiveKind::kAllToAll;
  const uint32_t chunks = ChunkCount(algorithm, input);
  text += fmt::format("{} chunks", chunks);
  for (uint32_t position = 0; has_blocks && position < input.ranks(); ++position) {
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const Block block = BlockOf(algorithm, input, position, chunk);
      text += fmt::format(" {}>{}", block.from, block.to);
    }
  }
  return text;
}

std::string TimesText(const Algorithm& algorithm, const StepInput& input, Random* random) {
  std::vector<Pace> paces;
  const auto time = [&] {
    const Seconds all = algorithm.closed_form(input, Bytes(1e6), paces);
    return fmt::format(" {:.9g}", 1e6 * all.value());
  };
  const auto pace = [&] {
    return Pace{Seconds(1e-6 * random->Between(0, 20)),
                BytesPerSecond(1e9 * random->Between(1, 9))};
  };
  paces = {pace()};
  std::string text = time();
  while (paces.size() < 2 * input.ranks() + input.pieces + 20) paces.push_back(pace());
  return text + time();
}

TEST(GoldenAlgorithmsTest, SendWhatIsRecorded) {
  GoldenRecord record("algorithms");
  size_t number = 0;
  for (const Algorithm& algorithm : Algorithms()) {
    std::vector<Extents> grids;
    if (IsOnGrid(algorithm)) {
      for (uint32_t a = 1; a <= 5; ++a)
        for (uint32_t b = 1; b <= 5; ++b)
          if (a * b > 1) grids.push_back({a, b});
      grids.push_back({4, 8});
      if (algorithm.name() == std::string("bucket")) {
        grids.push_back({2, 3, 4});
        grids.push_back({3, 1, 2});
      }
    } else {
      for (uint32_t p = 2; p <= 17; ++p) grids.push_back({p});
    }
    for (const CollectiveKind kind : kCollectiveKinds) {
      if (!algorithm.kinds.Has(kind) || record.IsLeftOut(number++)) continue;
      Random random(number);
      Fnv1a steps;
      Fnv1a times;
      std::string example;
      for (const Extents& extents : grids) {
        for (const uint32_t pieces : {1u, 3u}) {
          if (pieces > 1 && !algorithm.pipelined.Has(kind)) continue;
          for (const bool reversed : {false, true}) {
            for (uint32_t variant = 0; variant < (IsOnGrid(algorithm) ? 2 : 1); ++variant) {
              StepInput input;
              input.kind = kind;
              input.extents = extents;
              input.pieces = pieces;
              input.variant = variant;
              input.reversed = reversed;
              steps.Add(StepsText(algorithm, input));
              if (reversed) continue;
              example = TimesText(algorithm, input, &random);
              times.Add(example);
            }
          }
        }
      }
      record.Add(fmt::format("{} {}", algorithm.name(), Name(kind)),
                 fmt::format("the last{} us", example) + DigestOf("steps", steps) +
                     DigestOf("times", times));
    }
  }
  record.End();
}

}  // namespace algorithms_test
}  // namespace rehearse
