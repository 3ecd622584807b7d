#include "workloads/planner/stage_sizes.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/planner/stages.h"

namespace rehearse {
namespace {

bool IsLayer(const Unit& unit) { return unit.layer >= 0; }

uint32_t LayersIn(const std::vector<Unit>& units) {
  return static_cast<uint32_t>(std::count_if(units.begin(), units.end(), IsLayer));
}

// The network's units before the first layer and after the last one.
uint32_t UnitsBefore(const std::vector<Unit>& units) {
  return static_cast<uint32_t>(std::find_if(units.begin(), units.end(), IsLayer) - units.begin());
}

double ParametersOf(const Network& network, const Unit& unit) {
  double sum = 0;
  for (uint32_t i = unit.first_matrix; i < unit.matrix_end; ++i) {
    const NetworkMatrix& matrix = network.matrices[i];
    sum += static_cast<double>(matrix.k) * static_cast<double>(matrix.n);
  }
  for (uint32_t node = unit.begin; node < unit.end; ++node) {
    for (const uint32_t vector : network.nodes[node].vectors) {
      sum += static_cast<double>(network.vectors[vector].size);
    }
  }
  return sum;
}

std::vector<double> FlopsOfUnits(const Network& network, const std::vector<Unit>& units) {
  Network part;
  part.matrices = network.matrices;
  part.micro_batches = 1;
  std::vector<double> flops;
  for (const Unit& unit : units) {
    part.nodes.assign(network.nodes.begin() + unit.begin, network.nodes.begin() + unit.end);
    flops.push_back(ForwardFlops(part).value());
  }
  return flops;
}

// Cuts into runs whose heaviest is as light as possible, by filling the first runs as far as a
// bound allows.
std::vector<uint32_t> Filled(const std::vector<double>& weights, uint32_t stages) {
  const auto fill = [&](double bound) {
    std::vector<uint32_t> sizes;
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const size_t stages_left = stages - sizes.size();
      const bool needs_rest = weights.size() - i <= stages_left && !sizes.empty();
      if (sizes.empty() || sum + weights[i] > bound || needs_rest) {
        sizes.push_back(0);
        sum = 0;
      }
      sum += weights[i];
      ++sizes.back();
    }
    return sizes;
  };
  double low = *std::max_element(weights.begin(), weights.end());
  double high = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int i = 0; i < 64 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    (fill(middle).size() <= stages ? high : low) = middle;
  }
  return fill(high);
}

double HeaviestOf(const std::vector<double>& weights, const std::vector<uint32_t>& sizes) {
  double heaviest = 0;
  size_t next = 0;
  for (const uint32_t size : sizes) {
    double sum = 0;
    for (uint32_t i = 0; i < size; ++i) sum += weights[next++];
    heaviest = std::max(heaviest, sum);
  }
  return heaviest;
}

}  // namespace

std::vector<uint32_t> SplitIntoStages(const Network& network, StageSplit split, uint32_t stages,
                                      const Place& place) {
  const std::vector<Unit> units = UnitsOf(network);
  const uint32_t layers = LayersIn(units);
  if (split == StageSplit::kLayers) {
    if (stages > 0 && layers % stages == 0 && layers > 0) return EvenStages(network, stages, place);
    throw Error(place,
                fmt::format("{} layers of {} do not split evenly into {} stages; expected a number "
                            "of stages that divides them, \"layers\" (how many each stage has), "
                            "\"layout\", or another \"split\"",
                            layers, network.name, stages));
  }
  if (stages > units.size()) {
    throw Error(place, fmt::format("{} stages: {} has {} layers and {} parts at their ends to "
                                   "share among them",
                                   stages, network.name, layers, units.size() - layers));
  }
  if (split == StageSplit::kLayersAndEnds) {
    const auto count = static_cast<uint32_t>(units.size());
    std::vector<uint32_t> sizes(stages, count / stages);
    for (uint32_t i = 0; i < count % stages; ++i) ++sizes[i];
    return sizes;
  }
  std::vector<double> weights;
  if (split == StageSplit::kFlops) weights = FlopsOfUnits(network, units);
  for (const Unit& unit : units) {
    if (split == StageSplit::kParameters) weights.push_back(ParametersOf(network, unit));
  }
  return split == StageSplit::kFlops ? EvenRuns(weights, stages) : Filled(weights, stages);
}

std::vector<uint32_t> EvenRuns(const std::vector<double>& weights, uint32_t runs) {
  CHECK_GE(weights.size(), runs);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  constexpr double kRounding = 1 + 1e-9;
  const double bound = HeaviestOf(weights, Filled(weights, runs)) * kRounding;
  const size_t units = weights.size();
  std::vector<double> least(units + 1, kNever);  // of the first so many, in the runs so far
  least[0] = 0;
  std::vector<std::vector<uint32_t>> last(runs, std::vector<uint32_t>(units + 1));
  for (uint32_t run = 0; run < runs; ++run) {
    std::vector<double> next(units + 1, kNever);
    for (size_t end = run + 1; end <= units; ++end) {
      double sum = 0;
      for (size_t begin = end; begin-- > run;) {
        sum += weights[begin];
        if (sum > bound) break;
        // Of equal ones, that with the shortest last run: earlier runs are the longer ones.
        if (least[begin] + sum * sum >= next[end]) continue;
        next[end] = least[begin] + sum * sum;
        last[run][end] = static_cast<uint32_t>(end - begin);
      }
    }
    least = std::move(next);
  }
  CHECK(least[units] < kNever);
  std::vector<uint32_t> sizes(runs);
  size_t end = units;
  for (uint32_t run = runs; run-- > 0; end -= sizes[run]) sizes[run] = last[run][end];
  return sizes;
}

std::vector<uint32_t> EvenStages(const Network& network, uint32_t stages, const Place& place) {
  CHECK_GE(stages, 1u);
  const uint32_t layers = LayersIn(UnitsOf(network));
  if (stages > std::max(layers, 1u)) {
    throw Error(place, fmt::format("{} stages: {} has only {} layers to share among them", stages,
                                   network.name, layers));
  }
  std::vector<uint32_t> of_stage(stages, layers / stages);
  for (uint32_t i = 0; i < layers % stages; ++i) ++of_stage[i];
  return StagesOfLayers(network, of_stage, place);
}

std::vector<uint32_t> StagesOfLayers(const Network& network, const std::vector<uint32_t>& layers,
                                     const Place& place) {
  CHECK(!layers.empty());
  const std::vector<Unit> units = UnitsOf(network);
  const uint32_t sum = std::accumulate(layers.begin(), layers.end(), 0u);
  if (sum != LayersIn(units)) {
    throw Error(place, fmt::format("stages of {} layers: found {} in all, expected the {} of {}",
                                   fmt::join(layers, ", "), sum, LayersIn(units), network.name));
  }
  std::vector<uint32_t> sizes(layers.size());
  size_t stage = 0;
  uint32_t used = 0;  // layers of the stage that are already taken
  uint32_t left = sum;
  for (const Unit& unit : units) {
    if (IsLayer(unit)) {
      for (; used == layers[stage]; used = 0) ++stage;
      ++used;
      --left;
    } else if (left == 0) {
      stage = layers.size() - 1;  // what comes after the layers
    }
    ++sizes[stage];
  }
  const auto empty = std::find(sizes.begin(), sizes.end(), 0u);
  if (empty != sizes.end()) {
    throw Error(place, fmt::format("stages of {} layers: stage {} has nothing to do",
                                   fmt::join(layers, ", "), empty - sizes.begin()));
  }
  return sizes;
}

namespace {

// "Et*3|(tt|)*2L" written out: "Ettt|tt|tt|L".
class LayoutReader {
 public:
  LayoutReader(const std::string& text, const Place& place) : text_(text), place_(place) {}

  std::string Read() {
    std::string out = ReadRun();
    if (at_ < text_.size()) Fail("\")\" without \"(\"");
    return out;
  }

 private:
  static constexpr size_t kMost = 1u << 16;

  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(place_, fmt::format("layout \"{}\", character {}: {}; expected stages of E, t, m "
                                    "and L separated by |, as in \"Et*3|(tt|)*6L\"",
                                    text_, at_ + 1, what));
  }

  std::string ReadRun() {
    std::string out;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char symbol = text_[at_];
      ++at_;
      if (symbol == ',' || symbol == ' ') continue;
      std::string part(1, symbol);
      if (symbol == '(') {
        part = ReadRun();
        if (at_ == text_.size()) Fail("\"(\" without \")\"");
        ++at_;
      } else if (std::string("EtmL|").find(symbol) == std::string::npos) {
        --at_;
        Fail(fmt::format("found \"{}\"", symbol));
      }
      const size_t times = ReadTimes();
      if (times * part.size() + out.size() > kMost) Fail("too many stages");
      for (size_t i = 0; i < times; ++i) out += part;
    }
    return out;
  }

  size_t ReadTimes() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    size_t digits = 0;
    size_t times = 0;
    for (++at_; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_, ++digits) {
      times = times * 10 + static_cast<size_t>(text_[at_] - '0');
      if (times > kMost) Fail("too many stages");
    }
    if (digits == 0) Fail("\"*\" without a number");
    return times;
  }

  const std::string& text_;
  const Place& place_;
  size_t at_ = 0;
};

uint32_t CountStages(const std::string& written) {
  return static_cast<uint32_t>(std::count(written.begin(), written.end(), '|')) + 1;
}

// Such a layer has a loss of its own.
bool PredictsAhead(const Network& network) {
  return std::count_if(network.nodes.begin(), network.nodes.end(), [](const NetworkNode& node) {
           return node.kind == NodeKind::kCrossEntropy;
         }) > 1;
}

}  // namespace

uint32_t CountStagesOfLayout(const std::string& layout, const Place& place) {
  return CountStages(LayoutReader(layout, place).Read());
}

std::vector<uint32_t> StagesOfLayout(const Network& network, const std::string& layout,
                                     uint32_t stages, const Place& place) {
  const std::string written = LayoutReader(layout, place).Read();
  const uint32_t count = CountStages(written);
  if (count != stages) {
    throw Error(place,
                fmt::format("layout \"{}\": found {} stages, expected {}", layout, count, stages));
  }
  const std::vector<Unit> units = UnitsOf(network);
  const uint32_t before = UnitsBefore(units);
  const uint32_t layers = LayersIn(units);
  const auto behind = static_cast<uint32_t>(units.size()) - before - layers;
  // The units as symbols, which must come in this order.
  const std::string end = PredictsAhead(network) ? "mL" : behind > 0 ? "L" : "";
  const std::string expected =
      std::string(before > 0 ? 1 : 0, 'E') + std::string(layers, 't') + end;
  std::string found = written;
  std::erase(found, '|');
  if (found != expected) {
    throw Error(place, fmt::format("layout \"{}\": found {} layers, expected {}{} layers of {}{}",
                                   layout, std::count(found.begin(), found.end(), 't'),
                                   before > 0 ? "E, then the " : "the ", layers, network.name,
                                   end.empty() ? "" : ", then " + end));
  }
  if (written.find("m|") != std::string::npos) {
    throw Error(place, fmt::format("layout \"{}\": m is in another stage than L; the layer that "
                                   "predicts further ahead shares the output layer, and is only "
                                   "possible beside it",
                                   layout));
  }
  std::vector<uint32_t> sizes(1);
  for (const char symbol : written) {
    if (symbol == '|') sizes.push_back(0);
    if (symbol == 'E') sizes.back() += before;
    if (symbol == 't') ++sizes.back();
    if (symbol == 'L') sizes.back() += behind;
  }
  const auto empty = std::find(sizes.begin(), sizes.end(), 0u);
  if (empty != sizes.end()) {
    throw Error(place, fmt::format("layout \"{}\": stage {} has nothing to do", layout,
                                   empty - sizes.begin()));
  }
  return sizes;
}

}  // namespace rehearse
