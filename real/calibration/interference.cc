#include "real/calibration/interference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLeastOverlap = 0.5;  // of the time that both are active
// Tiles that libraries cut products into.
constexpr std::pair<uint32_t, uint32_t> kTiles[] = {{64, 64},   {64, 128},  {128, 64}, {128, 128},
                                                    {128, 256}, {256, 128}, {256, 256}};

double MedianOf(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

Seconds OverlapOf(const Span& a, const Span& b) {
  return ToSeconds(std::max(Time(0), std::min(a.end, b.end) - std::max(a.begin, b.begin)));
}

// One product's 1 + s, as it was measured.
struct Slowed {
  Compute product;
  double factor;
};

struct WaveTrial {
  Slowdown slowdown;
  ErrorSummary errors;
  double mean = 0;
};

WaveTrial TryWaves(const std::vector<Slowed>& slowed, const std::optional<Waves>& waves) {
  WaveTrial trial;
  trial.slowdown.waves = waves;
  std::vector<double> left;  // to be explained by `gemm`
  for (const Slowed& own : slowed)
    left.push_back(own.factor / (1 + SlowdownOf(trial.slowdown, own.product)));
  trial.slowdown.gemm = std::max(0.0, MedianOf(left) - 1);
  std::vector<double> errors;
  for (const Slowed& own : slowed) {
    errors.push_back(std::abs(1 + SlowdownOf(trial.slowdown, own.product) - own.factor) /
                     own.factor);
    trial.mean += errors.back() / static_cast<double>(slowed.size());
  }
  trial.errors = SummarizeErrors(errors);
  return trial;
}

WaveTrial BestWaves(const std::vector<Slowed>& slowed, uint32_t multiprocessors) {
  WaveTrial best = TryWaves(slowed, std::nullopt);
  for (const auto& [rows, columns] : kTiles) {
    for (uint32_t taken = 1; 2 * taken <= multiprocessors; ++taken) {
      const WaveTrial trial = TryWaves(slowed, Waves{multiprocessors, taken, rows, columns});
      if (trial.mean < best.mean) best = trial;
    }
  }
  return best;
}

}  // namespace

std::optional<double> SlowdownFrom(Seconds alone, Seconds beside, Seconds overlap) {
  const Seconds done_meanwhile = alone - (beside - overlap);
  if (overlap < kLeastOverlap * beside || done_meanwhile <= Seconds(0)) return std::nullopt;
  const double slowdown = overlap / done_meanwhile - 1;
  // A thread that others kept from running, and no slowdown.
  if (slowdown > Slowdown::kMost) return std::nullopt;
  return std::max(0.0, slowdown);
}

std::vector<EncounterSamples> MeasureEncounters(const std::vector<Encounter>& encounters,
                                                DType dtype, Transport& transport,
                                                const ProbeOptions& options) {
  const Schedule schedule = MakeEncounterProbe(transport.size(), encounters, dtype);
  ProbeOptions own = options;
  own.streams = StreamUse::kThreads;
  const Probe probe = RunUntilKept(schedule, transport, own);
  std::vector<EncounterSamples> samples;
  for (const Encounter& encounter : encounters) samples.push_back({encounter, {}, {}, 0});
  for (const ProbedStep* step : probe.Kept()) {
    std::map<std::pair<uint32_t, uint32_t>, Span> spans;  // (rank, op)
    for (const Span& span : step->timeline.spans) spans[{span.rank, span.op}] = span;
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
      for (uint32_t i = 0; i < encounters.size(); ++i) {
        const auto span = [&](uint32_t op) { return spans.at({rank, i * kOpsOfEncounter + op}); };
        const auto length = [&](uint32_t op) { return ToSeconds(span(op).end - span(op).begin); };
        const Seconds overlap = OverlapOf(span(2), span(3));
        const auto compute = SlowdownFrom(length(0), length(2), overlap);
        const auto communication = SlowdownFrom(length(1), length(3), overlap);
        if (compute) samples[i].compute.push_back(*compute);
        if (communication) samples[i].communication.push_back(*communication);
        if (!compute && !communication) ++samples[i].apart;
      }
    }
  }
  return samples;
}

std::optional<InterferenceFit> FitInterference(const std::vector<EncounterSamples>& samples,
                                               uint32_t multiprocessors) {
  std::vector<Slowed> products;
  std::vector<double> copies;
  std::vector<double> communication;
  for (const EncounterSamples& own : samples) {
    communication.insert(communication.end(), own.communication.begin(), own.communication.end());
    if (own.compute.empty()) continue;
    const double slowdown = MedianOf(own.compute);
    if (own.encounter.product.m == 0) {
      copies.push_back(slowdown);
      continue;
    }
    Compute product;
    product.kind = ComputeKind::kGemm;
    product.gemm = own.encounter.product;
    products.push_back({product, 1 + slowdown});
  }
  if (products.empty() && copies.empty() && communication.empty()) return std::nullopt;
  InterferenceFit fit;
  if (!products.empty()) {
    const WaveTrial plain = TryWaves(products, std::nullopt);
    const WaveTrial waves = BestWaves(products, multiprocessors);
    fit.slowdown = 2 * waves.mean < plain.mean ? waves.slowdown : plain.slowdown;
    fit.plain_errors = plain.errors;
    fit.wave_errors = waves.errors;
  }
  if (!copies.empty()) fit.slowdown.memory = MedianOf(copies);
  if (!communication.empty()) fit.slowdown.communication = MedianOf(communication);
  return fit;
}

Json ToJson(const EncounterSamples& samples) {
  Json json;
  const Gemm& gemm = samples.encounter.product;
  if (gemm.m > 0) {
    json = {{"mode", Name(gemm.mode)}, {"m", gemm.m}, {"n", gemm.n}, {"k", gemm.k}};
  } else {
    json["copied_elements"] = samples.encounter.copied;
  }
  json["all_reduce_bytes"] = samples.encounter.bytes.value();
  json["compute_slowdowns"] = samples.compute;
  json["communication_slowdowns"] = samples.communication;
  json["did_not_meet"] = samples.apart;
  return json;
}

}  // namespace rehearse
