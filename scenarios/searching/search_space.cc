#include "scenarios/searching/search_space.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "scenarios/readers/search_options.h"
#include "scenarios/searching/objective.h"
#include "scenarios/searching/point_rates.h"
#include "scenarios/searching/wide_space.h"
#include "sim/base/error.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

using nlohmann::json;

constexpr size_t kMostChoices = 1'000'000;

void AppendFactorisations(uint32_t product, size_t factors, std::vector<uint32_t>* begun,
                          std::vector<std::vector<uint32_t>>* all) {
  if (factors == 1) {
    begun->push_back(product);
    all->push_back(*begun);
    begun->pop_back();
    return;
  }
  for (uint32_t first = product; first >= 1; --first) {
    if (product % first != 0) continue;
    begun->push_back(first);
    AppendFactorisations(product / first, factors - 1, begun, all);
    begun->pop_back();
  }
}

SpaceChoice ChoiceOfNumbers(const std::vector<std::string>& paths,
                            const std::vector<uint32_t>& numbers) {
  SpaceChoice choice;
  for (size_t i = 0; i < paths.size(); ++i) {
    choice.name += fmt::format("{}{} {}", i > 0 ? " " : "", LastPart(paths[i]), numbers[i]);
    choice.changes.emplace_back(paths[i], numbers[i]);
  }
  return choice;
}

SpaceAxis FactorAxis(const std::vector<std::string>& paths, const std::set<uint32_t>& products) {
  SpaceAxis axis;
  for (const std::string& path : paths)
    axis.name += (axis.name.empty() ? "" : " x ") + LastPart(path);
  for (const uint32_t product : products)
    for (const std::vector<uint32_t>& numbers : Factorisations(product, paths.size()))
      axis.choices.push_back(ChoiceOfNumbers(paths, numbers));
  return axis;
}

// SUMMA's square counts twice.
SpaceAxis SummaAxis(const std::set<uint32_t>& products) {
  SpaceAxis axis{.name = "q x q x depth x data", .choices = {}};
  for (const uint32_t product : products) {
    for (uint32_t q = 1; q <= product / q; ++q) {
      if (product % (q * q) != 0) continue;
      for (std::vector<uint32_t> numbers : Factorisations(product / (q * q), 2)) {
        numbers.insert(numbers.begin(), q);
        axis.choices.push_back(
            ChoiceOfNumbers({"strategy.q", "strategy.depth", "strategy.data"}, numbers));
      }
    }
  }
  return axis;
}

// Machines and the ranks of a machine are separate factors. A weight is kept p0 times, at most
// `most_p0` times.
SpaceAxis SbpAxis(const std::string& product, uint32_t nodes, uint32_t gpus, uint32_t most_p0) {
  SpaceAxis axis{.name = "placement of " + product, .choices = {}};
  for (const std::vector<uint32_t>& machines : Factorisations(nodes, 3)) {
    for (const std::vector<uint32_t>& ranks : Factorisations(gpus, 3)) {
      if (machines[0] * ranks[0] > most_p0) continue;
      json placement = json::array();
      std::string name = product;
      for (size_t i = 0; i < 3; ++i) {
        placement.push_back(gpus == 1 ? json(machines[i]) : json{machines[i], ranks[i]});
        name += fmt::format(" {}", gpus == 1 ? fmt::format("{}", machines[i])
                                             : fmt::format("{}x{}", machines[i], ranks[i]));
      }
      axis.choices.push_back({name, {{"strategy.products." + product, placement}}});
    }
  }
  return axis;
}

class SpaceReader {
 public:
  SpaceReader(const JsonDocument& document, uint32_t ranks, const JsonDocument* open)
      : document_(document), scenario_(document.Root()), open_(open), ranks_({ranks}) {}

  SearchSpace Read() {
    if (scenario_.Has("search")) {
      const JsonReader search = scenario_.At("search").As(SearchFields().shape());
      SearchOptions options;
      SearchFields().ReadInto(search, &options);
      if (options.most_p0 && scenario_.At("strategy").At("kind").String() != "sbp")
        search.At("most_p0").Fail("is for the strategy sbp by numbers");
      most_p0_ = options.most_p0.value_or(most_p0_);
      most_ranks_ = options.gpus.value_or(most_ranks_);
      // Axes of the cluster come first: others depend on how many ranks there may be.
      for (const JsonReader& axis : search.At("axes").Elements())
        if (axis.Has("path") || axis.Has("choices")) Add(ReadAxis(axis));
      FindRanks();
      for (const JsonReader& axis : search.At("axes").Elements())
        if (!axis.Has("path") && !axis.Has("choices")) Add(ReadAxis(axis));
      space_.constraints = options.where;
      if (!options.default_axes) {
        if (space_.axes.empty())
          search.At("default_axes").Fail("there is nothing to choose from; expected \"axes\" too");
        return std::move(space_);
      }
    }
    AddDefaults();
    return std::move(space_);
  }

 private:
  void Add(SpaceAxis axis) {
    for (const SpaceChoice& choice : axis.choices)
      for (const auto& [path, value] : choice.changes) paths_.insert(path);
    space_.axes.push_back(std::move(axis));
  }

  // If axes change the cluster and no placement says how many ranks there are, all devices of each
  // cluster count.
  void FindRanks() {
    const bool has_placement =
        open_ != nullptr ? open_->value().contains("placement") : scenario_.Has("placement");
    if (has_placement && most_ranks_ == std::numeric_limits<uint32_t>::max()) return;
    std::set<uint32_t> ranks;
    for (const SpaceAxis& axis : space_.axes) {
      for (const SpaceChoice& choice : axis.choices) {
        const bool is_of_cluster =
            std::any_of(choice.changes.begin(), choice.changes.end(), [](const auto& change) {
              return change.first == "cluster" || change.first.rfind("cluster.", 0) == 0;
            });
        if (!is_of_cluster) continue;
        JsonDocument document = document_;
        for (const auto& [path, value] : choice.changes)
          document.Set(path + "=" + value.dump(), axis.place);
        clusters_.emplace_back(ReadCluster(document.Root().At("cluster")));
        ranks.insert(std::min(clusters_.back()->device_count(), most_ranks_));
      }
    }
    if (!ranks.empty()) ranks_ = std::move(ranks);
  }

  static void CheckPath(const std::string& path, const JsonReader& reader) {
    CheckScenarioPath(path, reader);
    if (IsPathOfRates(path)) return;
    if (path == "search" || path.rfind("search.", 0) == 0)
      reader.Fail(
          "a search does not change itself; expected a path of the scenario, search.price or "
          "search.power");
  }

  SpaceAxis ReadAxis(const JsonReader& object) {
    SpaceAxis axis;
    if (object.Has("factors")) {
      const JsonReader reader = object.As(FactorsShape());
      std::vector<std::string> paths;
      for (const JsonReader& path : reader.At("factors").Elements()) {
        paths.push_back(path.String());
        CheckPath(paths.back(), path);
      }
      if (paths.empty()) reader.At("factors").Expected("at least one path");
      axis = FactorAxis(
          paths, reader.Has("of") ? std::set<uint32_t>{reader.At("of").Whole<uint32_t>()} : ranks_);
    } else if (object.Has("sbp_product")) {
      const JsonReader product = object.As(SbpPlacementShape()).At("sbp_product");
      axis = AxisOfPlacements(product.String(), product);
    } else {
      axis = ReadListedAxis(object, ' ', [](const std::string& path, const JsonReader& value) {
        CheckPath(path, value);
        if (path == "search.price") ReadPrice(value);
        if (path == "search.power") ReadPower(value);
        return value.value();
      });
    }
    axis.place = object.place();
    if (axis.choices.empty()) object.Fail("an axis of a search needs choices");
    // Choices called "cluster a" and "cluster b" are of the axis "cluster".
    const Changes& first = axis.choices.front().changes;
    const std::string part = first.empty() ? "" : LastPart(first.front().first);
    if (object.Has("choices") && !part.empty() &&
        std::all_of(axis.choices.begin(), axis.choices.end(),
                    [&](const SpaceChoice& choice) { return choice.name.starts_with(part + " "); }))
      axis.name = part;
    if (axis.choices.size() > kMostChoices)
      object.Fail(
          fmt::format("found {} choices, expected at most {}", axis.choices.size(), kMostChoices));
    return axis;
  }

  SpaceAxis AxisOfPlacements(const std::string& product, const JsonReader& place) const {
    const JsonReader strategy = scenario_.At("strategy");
    if (!strategy.Has("products") || !strategy.Has("nodes") || !strategy.Has("gpus"))
      place.Fail("is for the strategy sbp by numbers; expected \"nodes\", \"gpus\", \"products\"");
    return SbpAxis(product, static_cast<uint32_t>(strategy.At("nodes").Integer(1, 1 << 24)),
                   static_cast<uint32_t>(strategy.At("gpus").Integer(1, 1 << 24)), most_p0_);
  }

  // ---- Default axes -----------------------------------------------------------------------------

  void AddDefaults() {
    if (open_ != nullptr) {
      AddWide();
      return;
    }
    const JsonReader strategy = scenario_.At("strategy");
    const std::string kind = strategy.At("kind").String();
    if (kind == "sbp") {
      AddSbp(strategy);
    } else if (!ChangesAny(MeshPaths(kind, strategy))) {
      SpaceAxis axis =
          kind == "summa" ? SummaAxis(ranks_) : FactorAxis(MeshPaths(kind, strategy), ranks_);
      axis.place = strategy.place();
      space_.axes.insert(space_.axes.begin(), std::move(axis));
    }
    if (!ChangesAny({"training.micro_batches"})) AddMicroBatches();
  }

  // All but what axes change already.
  void AddWide() {
    if (clusters_.empty()) clusters_.emplace_back(ReadCluster(scenario_.At("cluster")));
    for (SpaceAxis& axis : WideAxes(*open_, clusters_, most_ranks_)) {
      if (axis.choices.empty())
        scenario_.At("training")
            .At("batch")
            .Fail(
                "no number of these clusters' GPUs divides it; expected a multiple of some of "
                "them");
      std::vector<std::string> paths;
      for (const auto& [path, value] : axis.choices.front().changes) paths.push_back(path);
      if (!ChangesAny(paths)) Add(std::move(axis));
    }
  }

  bool ChangesAny(const std::vector<std::string>& paths) const {
    return paths_.count("strategy") > 0 ||
           std::any_of(paths.begin(), paths.end(),
                       [&](const std::string& path) { return paths_.count(path) > 0; });
  }

  std::vector<std::string> MeshPaths(const std::string& kind, const JsonReader& strategy) const {
    static const std::map<std::string, std::vector<std::string>> kAxes = {
        {"megatron", {"tensor", "data"}},
        {"data-parallel", {"data"}},
        {"zero-1", {"shard", "replicas"}},
        {"zero-2", {"shard", "replicas"}},
        {"fsdp", {"shard", "replicas"}},
        {"atp", {"d1", "d2", "data"}},
        {"summa", {"q", "depth", "data"}},
        {"combined", {"tensor", "context", "shard", "replicas", "data"}}};
    std::vector<std::string> axes;
    if (kind == "4d") {
      const bool is_xyz = strategy.Has("x");
      axes = is_xyz ? std::vector<std::string>{"y", "x", "z", "data"}
                    : std::vector<std::string>{"column", "row", "depth", "data"};
    } else {
      const auto known = kAxes.find(kind);
      if (known == kAxes.end())
        strategy.At("kind").Fail(fmt::format(
            "the axes of \"{}\" are not known to a search; expected \"default_axes\": false and "
            "\"axes\"",
            kind));
      axes = known->second;
    }
    if (kind == "combined")
      std::erase_if(axes, [&](const std::string& axis) { return !strategy.Has(axis); });
    std::vector<std::string> paths;
    for (const std::string& axis : axes) paths.push_back("strategy." + axis);
    if (scenario_.Has("pipeline")) paths.emplace_back("pipeline.stages");
    if (paths.empty())
      strategy.Fail(
          "names none of its axes; expected those that a search may change, such as "
          "\"tensor\" and \"shard\"");
    return paths;
  }

  // An axis for each product's own name, or "default".
  void AddSbp(const JsonReader& strategy) {
    if (!strategy.Has("products") || strategy.Has("mesh"))
      strategy.Fail(
          "layouts of sbp have no default axes; expected \"default_axes\": false and "
          "\"axes\", or sbp by numbers");
    for (const auto& [product, value] : strategy.At("products").Members())
      if (!ChangesAny({"strategy.products." + product})) Add(AxisOfPlacements(product, value));
  }

  void AddMicroBatches() {
    const JsonReader batch = scenario_.At("training").At("batch");
    const auto samples = static_cast<uint64_t>(batch.Integer(1, int64_t{1} << 40));
    constexpr uint64_t kMost = 1u << 16;
    SpaceAxis axis{.name = "micro_batches", .choices = {}, .place = batch.place()};
    for (uint64_t count = 1; count <= std::min(samples, kMost); ++count)
      if (samples % count == 0)
        axis.choices.push_back(
            {fmt::format("micro_batches {}", count), {{"training.micro_batches", count}}});
    space_.axes.push_back(std::move(axis));
  }

  const JsonDocument& document_;
  const JsonReader scenario_;
  const JsonDocument* open_;  // null if there is a strategy
  SearchSpace space_;
  std::set<uint32_t> ranks_;     // that the axes of a mesh may multiply to
  std::set<std::string> paths_;  // that declared axes change
  uint32_t most_p0_ = std::numeric_limits<uint32_t>::max();
  uint32_t most_ranks_ = std::numeric_limits<uint32_t>::max();
  std::vector<std::shared_ptr<const Cluster>> clusters_;  // of axes
};

}  // namespace

double SearchSpace::Size() const {
  double size = 1;
  for (const SpaceAxis& axis : axes) size *= static_cast<double>(axis.choices.size());
  return size;
}

SpacePoint SearchSpace::PointAt(uint64_t index) const {
  SpacePoint point(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    point[i] = static_cast<uint32_t>(index % axes[i].choices.size());
    index /= axes[i].choices.size();
  }
  return point;
}

uint64_t SearchSpace::IndexOf(const SpacePoint& point) const {
  uint64_t index = 0;
  for (size_t i = 0; i < axes.size(); ++i) index = index * axes[i].choices.size() + point[i];
  return index;
}

Changes SearchSpace::ChangesOf(const SpacePoint& point) const {
  Changes changes;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Changes& more = axes[i].choices[point[i]].changes;
    changes.insert(changes.end(), more.begin(), more.end());
  }
  return changes;
}

std::string SearchSpace::NameOf(const SpacePoint& point) const {
  std::string name;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].choices.size() == 1 && axes.size() > 1 && !axes[i].is_always_named) continue;
    name += (name.empty() ? "" : ", ") + axes[i].choices[point[i]].name;
  }
  return name;
}

std::optional<std::string> SearchSpace::Broken(const json& scenario) const {
  return BrokenConstraint(constraints, scenario);
}

std::vector<std::vector<uint32_t>> Factorisations(uint32_t product, size_t factors) {
  std::vector<std::vector<uint32_t>> all;
  std::vector<uint32_t> begun;
  AppendFactorisations(product, factors, &begun, &all);
  return all;
}

SearchSpace ReadSpace(const JsonDocument& document, uint32_t ranks, const JsonDocument* open) {
  return SpaceReader(document, ranks, open).Read();
}

}  // namespace rehearse
