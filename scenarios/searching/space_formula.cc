#include "scenarios/searching/space_formula.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "scenarios/evaluating/changes.h"
#include "scenarios/readers/strategy_shapes.h"
#include "sim/base/error.h"
#include "workloads/layouts/layout.h"
#include "workloads/strategies/strategy_atp.h"
#include "workloads/strategies/strategy_sbp.h"

namespace rehearse {
namespace {

using nlohmann::json;

constexpr size_t kMostGroups = 4096;
constexpr size_t kMostPlaces = 64;
constexpr const char* kProducts = "strategy.products.";
constexpr uint32_t kNoPlacement = 0;  // the default's, if the product has no entry

// Whether one path is a part of what the other names.
bool IsWithin(const std::string& path, const std::string& whole) {
  return path.rfind(whole + ".", 0) == 0;
}
bool Overlap(const std::string& a, const std::string& b) {
  return a == b || IsWithin(a, b) || IsWithin(b, a);
}

std::optional<uint32_t> SizeIn(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto size = value.get<uint64_t>();
  if (size < 1 || size > uint64_t{kMostMeshRanks}) return std::nullopt;
  return static_cast<uint32_t>(size);
}

std::optional<SbpChoice> PlacementIn(const json& value) {
  if (!value.is_array() || value.size() != 3) return std::nullopt;
  for (const json& part : value) {
    if (!part.is_array()) {
      if (!SizeIn(part)) return std::nullopt;
    } else if (part.size() != 2 || !SizeIn(part[0]) || !SizeIn(part[1])) {
      return std::nullopt;
    }
  }
  return ReadSbpChoice(value);
}

SbpNumbers NumbersOf(const SbpChoice& choice) {
  return {.nodes = {choice.p0.nodes, choice.p1.nodes, choice.p2.nodes},
          .gpus = {choice.p0.gpus, choice.p1.gpus, choice.p2.gpus}};
}

// ---- AxoNN and ATP ----------------------------------------------------------------------------

class AxonnFormula {
 public:
  explicit AxonnFormula(AxonnInput input) : input_(std::move(input)) {}

  std::optional<double> At(const uint32_t* sizes) const {
    FourDOptions options;
    options.column = sizes[0];
    options.row = sizes[1];
    options.depth = sizes[2];
    options.data = sizes[3];
    try {
      return PredictAxonn(input_.products, input_.training, options, input_.bandwidths)
          .Total()
          .value();
    } catch (const Error&) {  // a group that the machine's table does not have
      return std::nullopt;
    }
  }

 private:
  AxonnInput input_;
};

class AtpFormula {
 public:
  explicit AtpFormula(const AtpInput& input) : input_(input) {}

  bool Has(uint32_t devices) const {
    return std::any_of(bandwidths_.begin(), bandwidths_.end(),
                       [&](const Bandwidths& one) { return one.mesh.d1 * one.mesh.d2 == devices; });
  }
  // Adds the bandwidths of all meshes of the matrix's devices.
  void Add(uint32_t devices, const CommunicationMatrix& matrix) {
    for (uint32_t d1 = 1; d1 <= devices; ++d1) {
      const AtpMesh mesh{d1, devices / d1};
      if (devices % d1 != 0 || !SplitsEvenly(matrix, mesh)) continue;
      const MeshBandwidths found = AllReduceBandwidths(matrix, mesh.d1, mesh.d2);
      bandwidths_.push_back({mesh, AtpAlgorithmBandwidth(found.first, mesh.d1),
                             AtpAlgorithmBandwidth(found.second, mesh.d2)});
    }
    std::sort(bandwidths_.begin(), bandwidths_.end(),
              [](const Bandwidths& a, const Bandwidths& b) { return Key(a.mesh) < Key(b.mesh); });
  }

  std::optional<double> At(const uint32_t* sizes) const {
    const AtpMesh mesh{sizes[0], sizes[1]};
    const auto found =
        std::lower_bound(bandwidths_.begin(), bandwidths_.end(), Key(mesh),
                         [](const Bandwidths& one, uint64_t key) { return Key(one.mesh) < key; });
    if (found == bandwidths_.end() || Key(found->mesh) != Key(mesh)) return std::nullopt;
    return PredictAtp(input_.Of(sizes[2]), mesh, found->b1, found->b2).Total().value();
  }

 private:
  struct Bandwidths {
    AtpMesh mesh;
    BytesPerSecond b1;
    BytesPerSecond b2;
  };
  static uint64_t Key(const AtpMesh& mesh) { return uint64_t{mesh.d1} << 32 | mesh.d2; }

  AtpInput input_;
  std::vector<Bandwidths> bandwidths_;  // of meshes in order
};

// A mesh of these sizes must have as many ranks as the scenario's.
template <typename Formula>
class MeshFormula {
 public:
  MeshFormula(Formula formula, size_t sizes, uint64_t ranks)
      : formula_(std::move(formula)), sizes_(sizes), ranks_(ranks) {}

  const Formula& formula() const { return formula_; }

  std::optional<double> At(const uint32_t* values) const {
    uint64_t ranks = 1;
    for (size_t i = 0; i < sizes_; ++i) {
      ranks *= values[i];
      if (ranks > ranks_) return std::nullopt;
    }
    return ranks == ranks_ ? formula_.At(values) : std::nullopt;
  }

 private:
  Formula formula_;
  size_t sizes_;
  uint64_t ranks_;
};

// ---- AutoDDL ----------------------------------------------------------------------------------

// What each product costs in each placement.
class AutoddlFormula {
 public:
  // `places` are the names of products that have a place, after that of "default".
  AutoddlFormula(const AutoddlInput& input, const Network& network,
                 const std::vector<std::string>& places, const std::vector<SbpChoice>& placements,
                 uint32_t nodes, uint32_t gpus)
      : count_(placements.size()) {
    CHECK(!placements.empty());
    const auto place_of = [&](const std::string& name) {
      const auto found = std::find(places.begin(), places.end(), name);
      return static_cast<uint32_t>(found == places.end() ? 0 : found - places.begin());
    };
    for (const AutoddlInput::Product& one : input.chain) {
      chain_.push_back(place_of(one.name));
      for (SbpChoice choice : placements) {
        if (one.is_tied) std::swap(choice.p1, choice.p2);
        SbpProduct product = one.product;
        product.choice = choice;
        terms_.push_back(TermsOf(product, input.network));
      }
    }
    for (const NetworkMatrix& matrix : network.matrices) {
      const std::string& name = matrix.tied ? network.matrices[*matrix.tied].name : matrix.name;
      matrices_.push_back(place_of(name));
      cuts_.push_back(kImpossible);  // of kNoPlacement
      for (size_t i = 1; i < placements.size(); ++i) {
        const SbpNumbers numbers = NumbersOf(placements[i]);
        cuts_.push_back(
            SbpCuts(matrix.tied ? Exchanged(numbers) : numbers, matrix.role, nodes, gpus)
                .value_or(kImpossible));
      }
    }
    // Equal p0 have equal numbers.
    for (const SbpChoice& choice : placements) {
      const auto found = std::find_if(placements.begin(), placements.end(),
                                      [&](const SbpChoice& one) { return one.p0 == choice.p0; });
      p0_.push_back(static_cast<uint32_t>(found - placements.begin()));
    }
  }

  std::optional<double> At(const uint32_t* values) const {
    const auto placement = [&](uint32_t place) {
      return values[place] == kNoPlacement ? values[0] : values[place];
    };
    uint64_t cuts = 0;
    for (size_t i = 0; i < matrices_.size(); ++i)
      cuts |= cuts_[i * count_ + placement(matrices_[i])];
    if (cuts == kImpossible || std::popcount(cuts) > static_cast<int>(kMostAxes))
      return std::nullopt;
    AutoddlPrediction sum;
    uint32_t before = 0;
    for (size_t i = 0; i < chain_.size(); ++i) {
      const uint32_t own = placement(chain_[i]);
      sum.Add(terms_[i * count_ + own], i > 0 && p0_[own] != p0_[before]);
      before = own;
    }
    return sum.Total().value();
  }

 private:
  static constexpr uint64_t kImpossible = std::numeric_limits<uint64_t>::max();

  size_t count_;                     // of placements
  std::vector<uint32_t> chain_;      // products: their places
  std::vector<AutoddlTerms> terms_;  // [product][placement]
  std::vector<uint32_t> matrices_;   // likewise, with those of no product
  std::vector<uint64_t> cuts_;
  std::vector<uint32_t> p0_;  // by placement
};

}  // namespace

// ---- Groups -----------------------------------------------------------------------------------

// Points that differ only in what the formula is put to.
class SpaceFormula::Group {
 public:
  using Formula = std::variant<MeshFormula<AxonnFormula>, MeshFormula<AtpFormula>, AutoddlFormula>;
  // A constraint's product over what is equal in the group, and the places of the rest.
  struct Constraint {
    uint64_t constant = 1;
    std::vector<size_t> places = {};
  };

  Group(Formula formula, std::vector<Constraint> constraints)
      : formula_(std::move(formula)), constraints_(std::move(constraints)) {}

  const Formula& formula() const { return formula_; }

  Found At(const uint32_t* values, const std::vector<SpaceConstraint>& constraints) const {
    for (size_t i = 0; i < constraints_.size(); ++i) {
      uint64_t product = constraints_[i].constant;
      for (const size_t place : constraints_[i].places) product *= values[place];
      if (!constraints[i].Allows(product)) return {std::nullopt, &constraints[i]};
    }
    return {std::visit([&](const auto& formula) { return formula.At(values); }, formula_)};
  }

 private:
  Formula formula_;
  std::vector<Constraint> constraints_;
};

// What each choice sets, and how many groups two neighbouring choices are apart.
struct SpaceFormula::Axis {
  size_t group_step = 0;        // 0 if it only changes what the formula is put to
  std::vector<uint32_t> begin;  // by choice, where in `settings`; and the end
  std::vector<std::pair<uint32_t, uint32_t>> settings;  // place, value
};

SpaceFormula::SpaceFormula(const SearchSpace& space, PaperModel model, const JsonDocument& scenario,
                           PaperModels* models)
    : model_(model),
      models_(*models),
      constraints_(space.constraints),
      groups_(Compile(space, scenario)) {}

SpaceFormula::~SpaceFormula() = default;

size_t SpaceFormula::Compile(const SearchSpace& space, const JsonDocument& scenario) {
  const json strategy = ValueAt(scenario.value(), "strategy");
  if (!strategy.is_object()) return 0;
  const bool is_sbp = model_ == PaperModel::kAutoddl;
  const auto add_place = [&](const std::string& path) {
    const auto found = std::find(places_.begin(), places_.end(), path);
    if (found == places_.end()) places_.push_back(path);
    return static_cast<uint32_t>(found - places_.begin());
  };
  if (is_sbp) {
    if (!strategy.contains("products") || !strategy["products"].is_object()) return 0;
    placements_.push_back({});  // kNoPlacement
    add_place(std::string(kProducts) + "default");
    for (const auto& [name, value] : strategy["products"].items()) add_place(kProducts + name);
    for (const SpaceAxis& axis : space.axes)
      for (const SpaceChoice& choice : axis.choices)
        for (const auto& [path, value] : choice.changes)
          if (path.rfind(kProducts, 0) == 0) add_place(path);
  } else if (model_ == PaperModel::kAtp) {
    places_ = {"strategy.d1", "strategy.d2", "strategy.data"};
  } else if (strategy.contains("x")) {
    places_ = {"strategy.y", "strategy.x", "strategy.z", "strategy.data"};
  } else {
    places_ = {"strategy.column", "strategy.row", "strategy.depth", "strategy.data"};
  }
  if (places_.size() > kMostPlaces) return 0;

  std::map<std::array<uint32_t, 6>, uint32_t> numbers;  // of placements
  const auto value_of = [&](const json& value) -> std::optional<uint32_t> {
    if (!is_sbp) return SizeIn(value);
    const std::optional<SbpChoice> choice = PlacementIn(value);
    if (!choice) return std::nullopt;
    const auto& [p0, p1, p2] = *choice;
    const auto [known, is_new] = numbers.emplace(
        std::array{p0.nodes, p0.gpus, p1.nodes, p1.gpus, p2.nodes, p2.gpus}, placements_.size());
    if (is_new) placements_.push_back(*choice);
    return known->second;
  };
  for (const std::string& path : places_) {
    const json value = ValueAt(scenario.value(), path);
    std::optional<uint32_t> own = kNoPlacement;
    if (!is_sbp || !value.is_null()) own = value_of(value);
    if (!own) return 0;
    given_.push_back(*own);
  }

  size_t groups = 1;
  for (const SpaceAxis& axis : space.axes) {
    Axis own;
    bool has_more = false;
    own.begin.push_back(0);
    for (const SpaceChoice& choice : axis.choices) {
      for (const auto& [path, value] : choice.changes) {
        const auto place = std::find(places_.begin(), places_.end(), path);
        if (place == places_.end()) {
          has_more = true;
          for (const std::string& other : places_)
            if (Overlap(path, other)) return 0;
          continue;
        }
        const std::optional<uint32_t> number = value_of(value);
        if (!number) return 0;
        own.settings.emplace_back(static_cast<uint32_t>(place - places_.begin()), *number);
      }
      own.begin.push_back(static_cast<uint32_t>(own.settings.size()));
    }
    if (has_more) {
      own.group_step = groups;
      groups *= axis.choices.size();
      if (groups > kMostGroups) return 0;
    }
    axes_.push_back(std::move(own));
  }
  for (const SpaceConstraint& constraint : space.constraints)
    for (const std::string& path : constraint.product)
      for (const std::string& place : places_)
        if (Overlap(path, place) && (is_sbp || path != place)) return 0;
  return groups;
}

size_t SpaceFormula::GroupOf(const SpacePoint& point) const {
  size_t group = 0;
  for (size_t i = 0; i < axes_.size(); ++i) group += point[i] * axes_[i].group_step;
  return group;
}

// Later axes have the last word, as when the scenario is changed.
void SpaceFormula::Place(const SpacePoint& point, uint32_t* values) const {
  std::copy(given_.begin(), given_.end(), values);
  for (size_t i = 0; i < axes_.size(); ++i) {
    const Axis& axis = axes_[i];
    for (uint32_t k = axis.begin[point[i]]; k < axis.begin[point[i] + 1]; ++k)
      values[axis.settings[k].first] = axis.settings[k].second;
  }
}

SpaceFormula::Found SpaceFormula::At(const SpacePoint& point) const {
  if (groups_.empty()) return {};
  const Group* group = groups_[GroupOf(point)].load(std::memory_order_acquire);
  if (group == nullptr) return {};
  std::array<uint32_t, kMostPlaces> values = {};
  Place(point, values.data());
  return group->At(values.data(), constraints_);
}

void SpaceFormula::Learn(const SpacePoint& point, const JsonDocument& document,
                         const Scenario& scenario) {
  if (groups_.empty()) return;
  std::atomic<const Group*>& group = groups_[GroupOf(point)];
  const std::lock_guard lock(mutex_);
  const Group* known = group.load(std::memory_order_relaxed);
  // ATP's group learns the bandwidths of more meshes.
  if (known != nullptr && model_ != PaperModel::kAtp) return;
  std::unique_ptr<const Group> made = Made(document, scenario, known);
  if (made == nullptr) return;
  group.store(made.get(), std::memory_order_release);
  made_.push_back(std::move(made));
}

std::unique_ptr<SpaceFormula::Group> SpaceFormula::Made(const JsonDocument& document,
                                                        const Scenario& scenario,
                                                        const Group* known) const {
  std::vector<Group::Constraint> constraints;
  for (const SpaceConstraint& constraint : constraints_) {
    constraints.emplace_back();
    for (const std::string& path : constraint.product) {
      const auto place = std::find(places_.begin(), places_.end(), path);
      const json value = ValueAt(document.value(), path);
      if (place != places_.end())
        constraints.back().places.push_back(static_cast<size_t>(place - places_.begin()));
      else if (value.is_number_unsigned())
        constraints.back().constant *= value.get<uint64_t>();
    }
  }
  const auto& workload = std::get<Workload>(scenario.jobs.front().work);
  const uint32_t ranks = workload.ranks();
  switch (model_) {
    case PaperModel::kAxonn:
    case PaperModel::kAxonnAgnostic: {
      AxonnFormula formula(models_.AxonnInputOf(scenario, model_ == PaperModel::kAxonn));
      return std::make_unique<Group>(MeshFormula<AxonnFormula>(std::move(formula), 4, ranks),
                                     std::move(constraints));
    }
    case PaperModel::kAtp: {
      AtpFormula formula = known != nullptr
                               ? std::get<MeshFormula<AtpFormula>>(known->formula()).formula()
                               : AtpFormula(models_.AtpInputOf(scenario));
      const DeviceMesh& mesh = workload.strategy.mesh;
      const uint32_t devices = mesh.size() / mesh.AxisSize(kAtpDataAxis);
      if (!formula.Has(devices)) formula.Add(devices, models_.MatrixOf(scenario, devices));
      return std::make_unique<Group>(MeshFormula<AtpFormula>(std::move(formula), 3, ranks),
                                     std::move(constraints));
    }
    case PaperModel::kAutoddl: {
      const auto nodes = SizeIn(ValueAt(document.value(), "strategy.nodes"));
      const auto gpus = SizeIn(ValueAt(document.value(), "strategy.gpus"));
      const std::vector<std::string> products = ProductsIn(*workload.network);
      if (!nodes || !gpus || products.empty()) return nullptr;
      return std::make_unique<Group>(
          AutoddlFormula(models_.AutoddlInputOf(scenario), *workload.network, products, placements_,
                         *nodes, *gpus),
          std::move(constraints));
    }
  }
  CHECK(false);
}

// The names of the places; empty if the network lacks one or has it tied to another product, which
// is a mistake wherever a placement is given.
std::vector<std::string> SpaceFormula::ProductsIn(const Network& network) const {
  std::vector<std::string> names;
  for (const std::string& path : places_) {
    names.push_back(path.substr(std::string_view(kProducts).size()));
    if (names.size() == 1) continue;  // the default
    if (std::none_of(network.matrices.begin(), network.matrices.end(),
                     [&](const NetworkMatrix& matrix) {
                       return matrix.name == names.back() && !matrix.tied;
                     }))
      return {};
  }
  return names;
}

}  // namespace rehearse
