// All-to-alls between experts that send tokens once, from a scenario's pin to the schedule.
#include "scenarios/playing/token_shares.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives/algorithms/token_spread.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace token_shares_test {

// 16 experts over 16 GPUs of two boxes, 4 of them for each token.
Scenario Experts(const std::string& changes) {
  const std::string text = fmt::format(
      R"({{"name": "experts", "cluster": "dgx-h800:nodes=2",
           "model": {{"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 512, "style": "llama",
                      "tied": false, "feed_forward": 512,
                      "experts": {{"count": 16, "per_token": 4, "hidden": 128}}}},
           "training": {{"batch": 64, "sequence": 256, "recomputation": "none"}},
           "strategy": {{"kind": "combined", "data": 16, "expert": 16, "zero": 0,
                         "overlap_gradients": true}}{}}})",
      changes);
  return ReadScenario(JsonDocument::FromText(text, "experts.json"));
}

std::vector<Collective> Exchanges(const Scenario& scenario) {
  std::vector<Collective> exchanges;
  const Schedule schedule = PrepareOne(scenario, "this").schedule;
  for (const Op& op : schedule.roles.front().ops) {
    const auto* const collective = std::get_if<Collective>(&op.work);
    if (collective != nullptr && collective->kind == CollectiveKind::kAllToAll)
      exchanges.push_back(*collective);
  }
  return exchanges;
}

TEST(TokenSharesTest, PinnedToDeepEpTheySendTokensOnce) {
  const TokenSpread spread = SpreadOf({16, 4, 16, 2, 1, 1});
  const std::vector<Collective> pinned = Exchanges(Experts(
      R"(, "simulator": {"collectives": [{"kind": "all-to-all", "algorithm": "deepep"}]})"));
  ASSERT_FALSE(pinned.empty());
  for (const Collective& exchange : pinned) {
    EXPECT_EQ(exchange.algorithm, AlgorithmId::kDeepEp);
    EXPECT_DOUBLE_EQ(exchange.rank_share, spread.ranks / 4);
    EXPECT_DOUBLE_EQ(exchange.machine_share, spread.machines / 4);
  }
  for (const Collective& exchange : Exchanges(Experts(""))) {
    EXPECT_EQ(exchange.rank_share, 1);
    EXPECT_EQ(exchange.machine_share, 1);
  }
}

}  // namespace token_shares_test
}  // namespace rehearse
