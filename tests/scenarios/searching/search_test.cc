#include "scenarios/searching/search.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/paper_models.h"
#include "scenarios/searching/search_quality.h"
#include "scenarios/searching/search_report.h"
#include "tests/scenarios/small_scenario.h"
#include "workloads/cost_models/axonn_model.h"

namespace rehearse {
namespace search_test {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

Search SearchOf(std::vector<std::string> changes = {}) {
  JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
  for (const std::string& change : changes) document.Set(change);
  return ReadSearch(document);
}

std::string ErrorOf(const std::vector<std::string>& changes) {
  try {
    RunSearch(SearchOf(changes), {.threads = 1});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string NameOfBest(const Search& search, const FoundPoints& found) {
  return search.space.NameOf(found.points.front().point);
}

class NoStore : public PointStore {
 public:
  std::optional<Evaluation> Find(const EvaluationKey& /*key*/,
                                 const std::string& /*hash*/) override {
    return std::nullopt;
  }
  void Keep(const EvaluationKey& /*key*/, const Evaluation& /*evaluation*/) override {}
};

// Without a store they are not planned to the end. 4.9 G parameters of 18 B are 88 GB on one of
// these devices, and 11 GB on each of eight.
TEST(SearchTest, SaysTheSameOfPointsThatKeepTooMuchMemory) {
  const Search search =
      SearchOf({R"(model={"layers": 24, "hidden": 4096, "heads": 32, "vocabulary": 4096})",
                "strategy.cached_layers=0", "search.decide=\"simulation\"",
                R"(search.axes=[{"path": "training.micro_batches", "values": [1]}])"});
  NoStore store;
  const FoundPoints found = RunSearch(search, {.threads = 1});
  const FoundPoints stored = RunSearch(search, {.threads = 1, .stores = {&store}});
  EXPECT_GT(found.simulated, 0u);
  EXPECT_EQ(found.simulated, stored.simulated);
  ASSERT_EQ(found.excluded.count("out of memory"), 1u);
  ASSERT_EQ(stored.excluded.count("out of memory"), 1u);
  EXPECT_EQ(found.excluded.at("out of memory").points, stored.excluded.at("out of memory").points);
  EXPECT_EQ(found.excluded.at("out of memory").example,
            stored.excluded.at("out of memory").example);
  EXPECT_THAT(found.excluded.at("out of memory").example, HasSubstr("activations"));
}

// Independent of the search: every grid by hand, played one by one.
TEST(SearchTest, FindsTheGridThatIsBestWhenEachIsPlayed) {
  const Search search = SearchOf({"search.decide=\"simulation\""});
  const FoundPoints found = RunSearch(search, {.threads = 2});
  double best = 1e300;
  std::string name;
  size_t possible = 0;
  for (const uint32_t column : {1u, 2u, 4u, 8u}) {
    for (const uint32_t row : {1u, 2u, 4u, 8u}) {
      for (const uint32_t depth : {1u, 2u, 4u, 8u}) {
        if (8 % (column * row * depth) != 0) continue;
        for (const uint32_t micro_batches : {1u, 2u, 4u, 8u}) {
          const uint32_t data = 8 / (column * row * depth);
          try {
            const double step =
                testing::Play(
                    {fmt::format("strategy.column={}", column), fmt::format("strategy.row={}", row),
                     fmt::format("strategy.depth={}", depth), fmt::format("strategy.data={}", data),
                     fmt::format("training.micro_batches={}", micro_batches)})
                    .result.step.value();
            ++possible;
            if (step >= best) continue;
            best = step;
            name = fmt::format("column {} row {} depth {} data {}, micro_batches {}", column, row,
                               depth, data, micro_batches);
          } catch (const Error&) {
          }
        }
      }
    }
  }
  EXPECT_EQ(found.points.size(), possible);
  EXPECT_EQ(NameOfBest(search, found), name);
  EXPECT_EQ(found.points.front().simulated->step.value(), best);
  size_t excluded = 0;
  for (const auto& [reason, points] : found.excluded) excluded += points.points;
  EXPECT_EQ(found.looked_at, 80u);
  EXPECT_EQ(possible + excluded, 80u);
}

TEST(SearchTest, FindsTheSameWithAnyNumberOfThreads) {
  for (const char* method : {"exhaustive", "random", "descent", "metropolis", "annealing"}) {
    const Search search =
        SearchOf({"search.evaluations=30", fmt::format("search.method={}", method)});
    const auto text = [&](unsigned threads) {
      return ToJson(search, RunSearch(search, {.threads = threads}), {}).dump();
    };
    EXPECT_EQ(text(1), text(4)) << method;
  }
}

// Six whole spaces, two models on three machines: the best of all is among what the formula keeps,
// or a neighbour of the best of these.
using Space = std::tuple<const char*, const char*>;
class WholeSpaceTest : public ::testing::TestWithParam<Space> {};

TEST_P(WholeSpaceTest, WhatTheFormulaLeavesOutIsNotTheBest) {
  const std::vector<std::string> changes = {std::string("cluster=") + std::get<0>(GetParam()),
                                            std::string("model=") + std::get<1>(GetParam()),
                                            "search.keep_at_least=8"};
  std::vector<std::string> all = changes;
  all.emplace_back("search.decide=\"simulation\"");
  const Search pruned = SearchOf(changes);
  const Search whole = SearchOf(all);
  const FoundPoints some = RunSearch(pruned, {.threads = 2});
  EXPECT_LT(some.simulated, some.points.size());
  EXPECT_EQ(NameOfBest(pruned, some), NameOfBest(whole, RunSearch(whole, {.threads = 2})));
}

INSTANTIATE_TEST_SUITE_P(
    Spaces, WholeSpaceTest,
    ::testing::Combine(
        ::testing::Values("perlmutter:nodes=2", "frontier:nodes=1", "dgx-a100:nodes=1"),
        ::testing::Values(R"({"layers": 2, "hidden": 1024, "heads": 16, "vocabulary": 4096})",
                          R"({"layers": 2, "hidden": 4096, "heads": 32, "vocabulary": 4096})")),
    [](const ::testing::TestParamInfo<Space>& space) { return std::to_string(space.index); });

TEST(SearchTest, TwoObjectivesHaveAFront) {
  const Search search =
      SearchOf({R"(search.objective=["time", "memory"])", "search.decide=\"simulation\""});
  const FoundPoints found = RunSearch(search, {.threads = 2});
  size_t on_front = 0;
  for (const FoundPoint& point : found.points) {
    const std::vector<double>& own = point.simulated->values;
    const bool is_beaten =
        std::any_of(found.points.begin(), found.points.end(), [&](const FoundPoint& other) {
          const std::vector<double>& values = other.simulated->values;
          return values[0] <= own[0] && values[1] <= own[1] &&
                 (values[0] < own[0] || values[1] < own[1]);
        });
    if (point.on_front) {
      ++on_front;
      EXPECT_FALSE(is_beaten);
    } else {
      EXPECT_TRUE(is_beaten || on_front > 0);
    }
  }
  EXPECT_GT(on_front, 1u);
}

TEST(SearchTest, ObjectivesFollowFromTheStep) {
  const auto value = [](const std::string& objective, const std::string& more = "{}") {
    std::vector<std::string> changes = {
        "search=" + more, fmt::format("search.objective=\"{}\"", objective),
        "search.default_axes=false", R"(search.axes=[{"path": "training.batch", "values": [8]}])"};
    const Search search = SearchOf(changes);
    return RunSearch(search, {.threads = 1}).points.front().simulated->values.front();
  };
  const Result result = testing::Play().result;
  const double step = result.step.value();
  EXPECT_EQ(value("time"), step);
  // 8 sequences of 256 tokens on 8 GPUs.
  EXPECT_NEAR(value("tokens"), 8 * 256 / step, 1e-6);
  const double gpu_hours = 8 * step / 3600 / (8 * 256) * 1e6;
  EXPECT_NEAR(value("gpu-hours"), gpu_hours, 1e-9);
  EXPECT_NEAR(value("money", R"({"price": "2.5 EUR/h"})"), 2.5 * gpu_hours, 1e-9);
  // An A100 of 40 GB takes 400 W.
  const double busy = 1 - result.breakdown.idle.value() / step;
  EXPECT_NEAR(value("energy"), 0.4 * gpu_hours * busy, 1e-9);
  EXPECT_NEAR(value("energy", R"({"power": "0.2kW"})"), 0.2 * gpu_hours * busy, 1e-9);
  EXPECT_EQ(value("memory"), (result.memory.Total() + result.memory_reserve).value());
  EXPECT_EQ(value("breakdown.compute_seconds"), result.breakdown.compute.value());
}

// Two batches stand for two machines: the best of each is what a search of it alone finds.
TEST(SearchTest, FindsTheBestPerChoiceOfAnAxis) {
  const std::string axis = R"({"choices": [
      {"name": "few", "set": {"training.sequence": 64, "search.price": "1USD/h"}},
      {"name": "many", "set": {"training.sequence": 128, "search.price": "3USD/h"}},
      {"name": "too many", "set": {"training.sequence": 100000000, "search.price": "1USD/h"}}]})";
  const Search search =
      SearchOf({"search.axes=[" + axis + "]", "search.per=\"training.sequence\"",
                R"(search.objective=["money", "time"])", "search.decide=\"simulation\""});
  const FoundPoints found = RunSearch(search, {.threads = 2});
  ASSERT_EQ(found.groups.size(), 3);
  size_t looked_at = 0;
  for (const FoundGroup& group : found.groups) looked_at += group.looked_at;
  EXPECT_EQ(found.looked_at, looked_at);
  EXPECT_FALSE(found.groups[2].best);
  for (size_t choice = 0; choice < 2; ++choice) {
    const FoundGroup& group = found.groups[choice];
    EXPECT_EQ(group.name, choice == 0 ? "few" : "many");
    ASSERT_TRUE(group.best);
    const FoundPoint& best = found.points[*group.best];
    const Search alone =
        SearchOf({fmt::format("training.sequence={}", choice == 0 ? 64 : 128),
                  fmt::format("search.price=\"{}USD/h\"", choice == 0 ? 1 : 3),
                  R"(search.objective=["money", "time"])", "search.decide=\"simulation\""});
    const FoundPoints one = RunSearch(alone, {.threads = 2});
    EXPECT_EQ(best.simulated->values, one.points.front().simulated->values);
    EXPECT_EQ(best.simulated->money, best.simulated->values.front());
  }
  const std::string text = ToText(search, found, {});
  EXPECT_THAT(text, AllOf(HasSubstr("The best of each"), HasSubstr("a million cost"),
                          HasSubstr("too many"), HasSubstr("points is possible")));
  const auto json = ToJson(search, found, {});
  EXPECT_EQ(json["per"]["path"], "training.sequence");
  EXPECT_EQ(json["per"]["choices"][0]["ratio"], 1.0);
  EXPECT_GT(json["per"]["choices"][1]["ratio"], 1.0);
}

// A walk spends what it may look at on points that the conditions let through.
TEST(SearchTest, WalksOnlyWhatConditionsAllow) {
  const std::string where = R"(search.where=[{"product": ["strategy.column"], "equals": 2}])";
  const FoundPoints all = RunSearch(SearchOf({where}), {.threads = 1});
  size_t excluded = 0;
  for (const auto& [reason, points] : all.excluded)
    if (reason.find("\"where\"") != std::string::npos) excluded += points.points;
  EXPECT_EQ(all.looked_at, 80);
  EXPECT_GT(excluded, 0);
  for (const char* method : {"random", "descent", "metropolis", "annealing"}) {
    const FoundPoints found = RunSearch(
        SearchOf({where, fmt::format("search.method=\"{}\"", method), "search.evaluations=60"}),
        {.threads = 1});
    EXPECT_LE(found.looked_at, all.looked_at - excluded) << method;
    for (const auto& [reason, points] : found.excluded)
      EXPECT_EQ(reason.find("\"where\""), std::string::npos) << method;
  }
}

// As it is written, the scenario is impossible; some of its points are not.
TEST(SearchTest, BeginsFromAnImpossibleScenario) {
  const std::string impossible = "training.micro_batches=7";
  const FoundPoints found = RunSearch(SearchOf({impossible}), {.threads = 1});
  EXPECT_GT(found.simulated, 0);
  EXPECT_THAT(ErrorOf({"training.batches=8"}), HasSubstr("batches"));
}

TEST(SearchTest, MoneyAndEnergyMayBeThoseOfTheScenariosCosts) {
  const char* const costs =
      R"(costs={"gpu_hour": "2USD/h", "electricity": "0.1USD/kWh", "gpu_power": "400W",
                "gpu_idle_power": "0W", "host_power": "1kW"})";
  const std::vector<std::string> axis = {
      costs, "search.default_axes=false",
      R"(search.axes=[{"path": "training.batch", "values": [8]}])"};
  std::vector<std::string> money = axis;
  money.emplace_back("search.objective=\"money\"");
  const FoundPoints found = RunSearch(SearchOf(money), {.threads = 1});
  const Result result = testing::Play().result;
  const double hours = 1e6 / result.tokens_per_second / 3600;
  const double busy = 1 - result.breakdown.idle / result.step;
  // 8 GPUs by the hour; they and two hosts draw power.
  const double kilowatts = 8 * 0.4 * busy + 2;
  const SimulatedPoint& point = *found.points.front().simulated;
  EXPECT_NEAR(point.values.front(), hours * (8 * 2 + 0.1 * kilowatts), 1e-9);
  EXPECT_NEAR(*point.energy, hours * kilowatts, 1e-9);
  std::vector<std::string> both = money;
  both.emplace_back("search.price=\"1USD/h\"");
  EXPECT_THAT(ErrorOf(both), HasSubstr("expected one of them"));
}

TEST(SearchTest, MistakesAreNamed) {
  EXPECT_THAT(ErrorOf({"search.per=\"cluster\""}),
              AllOf(HasSubstr("/search/per"), HasSubstr("a path that an axis changes")));
  EXPECT_THAT(ErrorOf({R"(search.axes=[{"path": "search.keep", "values": [1]}])"}),
              HasSubstr("search.price or search.power"));
  EXPECT_THAT(ErrorOf({R"(search.axes=[{"path": "search.price", "values": ["cheap"]}])"}),
              HasSubstr("expected a price such as \"2.5USD/h\""));
  EXPECT_THAT(
      ErrorOf({R"(search.axes=[{"path": "search.price", "values": ["1USD/h", "1EUR/h"]}])"}),
      HasSubstr("expected one currency"));
  EXPECT_THAT(ErrorOf({"search.objective=\"tim\""}),
              AllOf(HasSubstr("/search/objective"), HasSubstr("did you mean \"time\"")));
  EXPECT_THAT(ErrorOf({"search.objective=\"money\""}), HasSubstr("needs \"price\""));
  EXPECT_THAT(ErrorOf({"search.objective=\"money\"", "search.price=\"cheap\""}),
              HasSubstr("expected a price such as \"2.5USD/h\""));
  EXPECT_THAT(ErrorOf({R"(search.objective=["time", "time"])"}),
              HasSubstr("expected two different objectives"));
  EXPECT_THAT(ErrorOf({"search.method=\"decent\""}), HasSubstr("did you mean \"descent\""));
  EXPECT_THAT(ErrorOf({"search.evaluations=0"}), HasSubstr("from 1 to"));
  EXPECT_THAT(ErrorOf({"search.formula=\"atp\""}), HasSubstr("strategy \"atp\""));
  EXPECT_THAT(ErrorOf({R"(search.where=[{"product": ["strategy.column"], "at_least": 16}])"}),
              AllOf(HasSubstr("none of 80 points is possible"),
                    HasSubstr("strategy.column is at least 16")));
}

// Eq. 4 to 9 on a decoder's matrices give the same as on its hidden size, which strategy_4d_test.cc
// derives by hand; a Llama's MLP has three matrices, the first two as one of twice the columns.
TEST(PaperModelsTest, AxonnsIsOfAnyNetworksProducts) {
  const Scenario scenario = testing::ReadSmall();
  const auto& workload = std::get<Workload>(scenario.jobs.front().work);
  const std::vector<AxonnProduct> products = AxonnProducts(*workload.network);
  ASSERT_EQ(products.size(), 4u);
  EXPECT_EQ(products[0].n, 3 * 1024);
  EXPECT_TRUE(products[1].transposed);
  EXPECT_EQ(products[3].count, 2);
  EXPECT_EQ(products[3].rows, 8 * 256);
  PaperModels models;
  EXPECT_EQ(PaperModels::ModelOf(scenario), PaperModel::kAxonn);
  const PaperPrediction prediction = models.Predict(PaperModel::kAxonn, scenario);
  FourDOptions options;
  options.column = 2;
  options.row = 2;
  options.depth = 2;
  options.data = 1;
  GptModel model;
  model.layers = 2;
  model.hidden = 1024;
  model.heads = 16;
  EXPECT_NEAR(
      prediction.total.value(),
      PredictAxonn(model, workload.training, options, PerlmutterBandwidths()).Total().value(),
      1e-12);
  EXPECT_EQ(prediction.terms.size(), 5u);
}

// On a machine that AxoNN has no table of, groups are timed on the simulated one: an NVSwitch gives
// each rank of every group all of its links.
TEST(PaperModelsTest, MachinesAreMeasuredAsTheAuthorsDid) {
  const std::string machine = "cluster=dgx-a100:nodes=1";
  const auto total = [&](const std::string& column, const std::string& row) {
    PaperModels models;
    return models
        .Predict(PaperModel::kAxonn,
                 testing::ReadSmall({machine, "strategy.column=" + column, "strategy.row=" + row}))
        .terms[2]
        .second.value();
  };
  // Forward all-reduces go over the rows of the grid for q, k, v and the MLP's first product, 3h
  // and 4h wide, over its columns for the two that are h wide; groups of 4 with none inside are as
  // quick whichever they are.
  EXPECT_NEAR(total("4", "1") / total("1", "4"), 2.0 / 7.0, 1e-9);
}

TEST(PaperModelsTest, AtpsAndAutoddlsSayTheirTerms) {
  PaperModels models;
  const Scenario atp = testing::ReadSmall(
      {R"(strategy={"kind": "atp", "d1": 2, "d2": 4, "data": 1, "first": "column", "chunks": 1,
           "overlap_all_reduce": true})"});
  EXPECT_EQ(PaperModels::ModelOf(atp), PaperModel::kAtp);
  const PaperPrediction of_atp = models.Predict(PaperModel::kAtp, atp);
  // Eq. 2: the MLP's first product has 4h/d1 on axis 2, q, k, v 3h/d1.
  EXPECT_NEAR(of_atp.terms[2].second / of_atp.terms[0].second, 4.0 / 3.0, 1e-9);
  const Scenario sbp = testing::ReadSmall(
      {R"(strategy={"kind": "sbp", "nodes": 2, "gpus": 4, "overlap_all_reduce": true,
           "overlap_gradients": true, "products": {"default": [[2, 4], 1, 1]}})"});
  EXPECT_EQ(PaperModels::ModelOf(sbp), PaperModel::kAutoddl);
  const PaperPrediction of_sbp = models.Predict(PaperModel::kAutoddl, sbp);
  // Data parallel: only gradients are summed.
  EXPECT_EQ(of_sbp.terms[0].second.value(), 0);
  EXPECT_EQ(of_sbp.terms[1].second.value(), 0);
  EXPECT_GT(of_sbp.terms[3].second.value(), 0);
  EXPECT_EQ(of_sbp.total.value(), of_sbp.terms[3].second.value());
  EXPECT_FALSE(PaperModels::ModelOf(testing::ReadSmall(
      {R"(strategy={"kind": "zero-1", "shard": 8, "replicas": 1, "overlap_gradients": true})"})));
}

TEST(SearchQualityTest, IsOneForAFormulaInTheRightOrder) {
  Search search = SearchOf();
  const auto found = [](const std::vector<std::pair<double, double>>& formula_and_step) {
    FoundPoints points;
    for (const auto& [formula, step] : formula_and_step) {
      FoundPoint point;
      point.formula = formula;
      point.simulated.emplace();
      point.simulated->values = {step};
      points.points.push_back(point);
    }
    return points;
  };
  const SearchQuality right =
      ComputeQuality(search, found({{1, 10}, {2, 12}, {3, 13}, {4, 14}, {5, 15}, {6, 16}}));
  EXPECT_EQ(right.average_precision_at_5, 1);
  EXPECT_EQ(right.kendall_tau, 1);
  EXPECT_EQ(right.regret, 0);
  EXPECT_EQ(right.rank_of_best, 1u);
  // The formula puts the worst first and the best fourth. The best five are efficient, so places 2
  // to 5 are right: (1/2 + 2/3 + 3/4 + 4/5) / 4. Of 15 pairs, the first point's 5 are wrong, and
  // the best one's 2 with those between: (15 - 2 * 7) / 15.
  const SearchQuality wrong =
      ComputeQuality(search, found({{4, 10}, {2, 12}, {3, 13}, {5, 14}, {6, 15}, {1, 16}}));
  EXPECT_THAT(wrong.average_precision_at_5,
              DoubleNear((1.0 / 2 + 2.0 / 3 + 3.0 / 4 + 4.0 / 5) / 4, 1e-12));
  EXPECT_THAT(wrong.kendall_tau, DoubleNear(1.0 / 15, 1e-12));
  EXPECT_THAT(wrong.regret, DoubleNear(0.6, 1e-12));
  EXPECT_EQ(wrong.rank_of_best, 4u);
}

}  // namespace search_test
}  // namespace rehearse
