#include "scenarios/searching/space_formula.h"

#include <bit>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/readers/scenario.h"
#include "scenarios/searching/search.h"
#include "tests/scenarios/small_scenario.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/strategies/strategy_sbp.h"

namespace rehearse {
namespace space_formula_test {

// What was found out about the points of a space, once by the formula and once by reading each
// point as a scenario.
struct Counts {
  size_t compiled = 0;
  size_t read = 0;    // possible, but left to the reader
  size_t broken = 0;  // "where", found by the formula
  size_t impossible = 0;
};

JsonDocument Changed(const JsonDocument& scenario, const SearchSpace& space,
                     const SpacePoint& point) {
  JsonDocument document = scenario;
  for (const auto& [path, value] : space.ChangesOf(point)) document.Set(path + "=" + value.dump());
  return document;
}

// All points of the space, or as many random ones.
Counts Compare(const JsonDocument& scenario, PaperModel model, size_t random = 0) {
  const uint32_t ranks = ReadScenario(scenario).cluster->device_count();
  const SearchSpace space = ReadSpace(scenario, ranks);
  PaperModels models;
  SpaceFormula formula(space, model, scenario, &models);
  std::mt19937_64 engine(1);
  Counts counts;
  const size_t points = random > 0 ? random : static_cast<size_t>(space.Size());
  for (size_t i = 0; i < points; ++i) {
    SpacePoint point;
    if (random == 0) {
      point = space.PointAt(i);
      EXPECT_EQ(space.IndexOf(point), i);
    } else {
      for (const SpaceAxis& axis : space.axes)
        point.push_back(static_cast<uint32_t>(engine() % axis.choices.size()));
    }
    const SpaceFormula::Found found = formula.At(point);
    const JsonDocument document = Changed(scenario, space, point);
    if (const auto broken = space.Broken(document.value())) {
      EXPECT_FALSE(found.seconds) << space.NameOf(point);
      if (found.broken == nullptr) continue;
      EXPECT_EQ(found.broken->Text(), *broken);
      ++counts.broken;
      continue;
    }
    EXPECT_EQ(found.broken, nullptr) << space.NameOf(point);
    try {
      const Scenario read = ReadScenario(document);
      const double wanted = models.Predict(model, read).total.value();
      if (found.seconds) {
        ++counts.compiled;
        EXPECT_EQ(std::bit_cast<uint64_t>(*found.seconds), std::bit_cast<uint64_t>(wanted))
            << space.NameOf(point) << ": " << *found.seconds << ", read: " << wanted;
      } else {
        ++counts.read;
        formula.Learn(point, document, read);
      }
    } catch (const Error& error) {
      ++counts.impossible;
      EXPECT_FALSE(found.seconds) << space.NameOf(point) << ": " << error.what();
    }
  }
  return counts;
}

JsonDocument Small(const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromText(testing::kSmall, "small.json");
  for (const std::string& change : changes) document.Set(change);
  return document;
}

std::string Shipped(const std::string& name) { return SourceDir() + "/scenarios/" + name; }

// Points are drawn, fewer where sanitizers make each ten times as slow.
constexpr size_t kFewer = kIsSanitized ? 5 : 1;

constexpr const char* kAtp =
    R"(strategy={"kind": "atp", "d1": 2, "d2": 4, "data": 1, "first": "column", "chunks": 1,
                 "overlap_all_reduce": true})";
constexpr const char* kSbp =
    R"(strategy={"kind": "sbp", "nodes": 2, "gpus": 4, "overlap_all_reduce": true,
                 "overlap_gradients": true, "products": {"default": [[2, 4], 1, 1]}})";

TEST(SpaceFormulaTest, AxonnsEqualsThatOfEachScenario) {
  for (const PaperModel model : {PaperModel::kAxonn, PaperModel::kAxonnAgnostic}) {
    // 20 grids and 4 numbers of micro-batches, of which each is read once.
    if (kIsSanitized && model == PaperModel::kAxonn) continue;  // goes the same way
    const Counts small = Compare(Small({}), model);
    EXPECT_EQ(small.compiled, 76u);
    EXPECT_EQ(small.read, 4u);
    const Counts shipped =
        Compare(JsonDocument::FromFile(Shipped("search-gpt40b-perlmutter.json")), model);
    EXPECT_EQ(shipped.compiled, 83u);
    // The names of SC24; another machine, timed; other models and machines as further axes.
    EXPECT_EQ(Compare(Small({R"(strategy={"kind": "4d", "x": 2, "y": 2, "z": 2, "data": 1,
                                "transpose_alternate_layers": true, "overlap_all_reduce": true,
                                "overlap_reduce_scatter": true, "overlap_all_gather": true,
                                "cached_layers": 1})"}),
                      model)
                  .compiled,
              76u);
    EXPECT_EQ(Compare(Small({"cluster=dgx-a100:nodes=1"}), model).compiled, 76u);
    EXPECT_EQ(Compare(Small({R"(search.axes=[{"path": "model.hidden", "values": [512, 1024]},
                                {"path": "cluster", "values": ["frontier:nodes=1",
                                                               "perlmutter:nodes=2"]}])"}),
                      model)
                  .compiled,
              4 * 76u);
  }
}

TEST(SpaceFormulaTest, MeshesOfOtherSizesAndConstraintsAreSeen) {
  // Axes one by one, most of whose products are no meshes of 8; groups of 3 are in no table.
  const Counts counts =
      Compare(Small({R"(search.axes=[{"path": "strategy.column", "values": [1, 2, 3, 4, 8]},
                             {"path": "strategy.row", "values": [1, 2, 4]},
                             {"path": "strategy.depth", "values": [1, 2, 4]},
                             {"path": "training.micro_batches", "values": [1, 2, 3]}])",
                     "search.default_axes=false",
                     R"(search.where=[{"product": ["strategy.column", "training.micro_batches"],
                               "at_most": 8}, {"product": ["strategy.row"], "divides": 2}])"}),
              PaperModel::kAxonn);
  EXPECT_GT(counts.compiled, 5u);
  EXPECT_EQ(counts.read, 3u);  // for each number of micro-batches
  EXPECT_GT(counts.broken, 10u);
  EXPECT_GT(counts.impossible, 10u);
}

TEST(SpaceFormulaTest, AtpsEqualsThatOfEachScenario) {
  const Counts small = Compare(Small({kAtp}), PaperModel::kAtp);
  // Of 10 meshes the first of each number of replicas is read.
  EXPECT_GT(small.compiled, 20u);
  for (const char* cluster : {"atp-ic4:nodes=4", "atp-ic1"}) {
    JsonDocument document = JsonDocument::FromFile(Shipped("search-atp-mesh.json"));
    document.Set(std::string("cluster=") + cluster);
    if (std::string(cluster) == "atp-ic1") document.Set("strategy.d1=4");
    const Counts counts = Compare(document, PaperModel::kAtp);
    EXPECT_GE(counts.compiled, 3u) << cluster;
    EXPECT_EQ(counts.read, 1u) << cluster;
    EXPECT_GT(counts.broken, 1u) << cluster;
  }
}

TEST(SpaceFormulaTest, AutoddlsEqualsThatOfEachScenario) {
  // The default for all products, which are not tied; then two of them apart from the rest.
  EXPECT_GT(Compare(Small({kSbp}), PaperModel::kAutoddl).compiled, 60u);
  const std::string two = R"(search.axes=[{"sbp_product": "qkv"}, {"sbp_product": "embedding"},
                                          {"path": "training.micro_batches", "values": [1, 2]}])";
  EXPECT_GT(Compare(Small({kSbp, two}), PaperModel::kAutoddl, 600 / kFewer).compiled,
            550u / kFewer);
  // The head is tied to the table, and "p2" of a product that the network lacks.
  EXPECT_GT(
      Compare(Small({kSbp, two, "model.tied=true"}), PaperModel::kAutoddl, 300 / kFewer).compiled,
      250u / kFewer);
  EXPECT_EQ(Compare(Small({kSbp, R"(search.axes=[{"sbp_product": "no such"}])"}),
                    PaperModel::kAutoddl, 50)
                .compiled,
            0u);
  const JsonDocument mlp = JsonDocument::FromFile(Shipped("search-mlp-piz-daint.json"));
  EXPECT_EQ(Compare(mlp, PaperModel::kAutoddl, 500 / kFewer).compiled, 500 / kFewer - 1);
}

// 4,096 machines are cut into 12 factors by some points, of which a mesh has at most 10.
TEST(SpaceFormulaTest, TooManyCutsAreLeftToTheReader) {
  JsonDocument mlp = JsonDocument::FromFile(Shipped("search-mlp-piz-daint.json"));
  mlp.Set("cluster.nodes=4096");
  mlp.Set("strategy.nodes=4096");
  mlp.Set(R"(strategy.products={"default": [4096, 1, 1], "fc 1": [4096, 1, 1],
             "fc 2": [4096, 1, 1], "fc 3": [4096, 1, 1], "fc 4": [4096, 1, 1]})");
  mlp.Set("training.batch=16384");
  const Counts counts = Compare(mlp, PaperModel::kAutoddl, 300 / kFewer);
  EXPECT_GT(counts.compiled, 250u / kFewer);
}

TEST(SpaceFormulaTest, CutsAreTheAxesOfTheMesh) {
  std::mt19937_64 engine(1);
  GptModel model;
  model.layers = 1;
  model.hidden = 64;
  model.heads = 4;
  model.vocabulary = 64;
  Training training;
  training.batch = 8;
  training.sequence = 8;
  const Network network = MakeDecoder(model, training);
  size_t refused = 0;
  for (int i = 0; i < 300; ++i) {
    SbpOptions options;
    options.nodes = std::array{4096u, 96u, 60u}[engine() % 3];
    options.gpus = std::array{1u, 4u, 6u}[engine() % 3];
    const auto some = [&](uint32_t total) {
      const auto all = Factorisations(total, 3);
      const std::vector<uint32_t>& p = all[engine() % all.size()];
      return std::array{p[0], p[1], p[2]};
    };
    uint64_t cuts = 0;
    for (const NetworkMatrix& matrix : network.matrices) {
      options.products.push_back({some(options.nodes), some(options.gpus)});
      cuts |= SbpCuts(options.products.back(), matrix.role, options.nodes, options.gpus).value();
    }
    const auto axes = static_cast<size_t>(std::popcount(cuts));
    try {
      EXPECT_EQ(MakeSbp(options, network).mesh.axes().size(), axes);
    } catch (const Error&) {
      ++refused;
      EXPECT_GT(axes, kMostAxes);
    }
  }
  EXPECT_GT(refused, 10u);
  EXPECT_FALSE(SbpCuts({{2, 2, 2}, {1, 1, 1}}, MatrixRole::kFirst, 4, 1));
}

// What changes more of the strategy than sizes is read point by point.
TEST(SpaceFormulaTest, OtherChangesOfTheStrategyAreLeftToTheReader) {
  for (const char* axes : {R"(search.axes=[{"path": "strategy", "values": ["4d"]}])",
                           R"(search.axes=[{"path": "strategy.column", "values": [2, "many"]}])",
                           R"(search.where=[{"product": ["strategy"], "at_least": 1}])"})
    EXPECT_EQ(Compare(Small({axes}), PaperModel::kAxonn, 40).compiled, 0u) << axes;
  EXPECT_EQ(Compare(Small({kSbp, R"(search.where=[{"product": ["strategy.products.default.0"],
                                                   "at_most": 2}])"}),
                    PaperModel::kAutoddl, 40)
                .compiled,
            0u);
}

}  // namespace space_formula_test
}  // namespace rehearse
