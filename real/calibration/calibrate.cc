#include "real/calibration/calibrate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "real/calibration/cost_fit.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/devices/measured_costs_json.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// A correction is made only from at least so many collectives of training steps.
constexpr size_t kFewestInPlace = 6;

Json SecondsJson(const std::vector<Seconds>& samples) {
  Json json = Json::array();
  for (const Seconds sample : samples) json.push_back(sample.value());
  return json;
}

Json QuantilesJson(const std::vector<Seconds>& samples) {
  const Quantiles quantiles = QuantilesOf(samples);
  return {quantiles.tenth.value(), quantiles.median.value(), quantiles.ninetieth.value()};
}

// A median of fewer samples is little more than one of them.
constexpr size_t kFewSamples = 5;
bool IsFew(size_t samples) { return samples < kFewSamples; }

// The least and the greatest, since so few have no quantiles.
Json RangeJson(const std::vector<Seconds>& samples) {
  const auto [least, greatest] = std::minmax_element(samples.begin(), samples.end());
  return {least->value(), greatest->value()};
}

// ---- Collectives in place -----------------------------------------------------------------------

struct InPlace {
  Seconds added;  // per step
  double factor = 1;
  size_t samples = 0;
  ErrorSummary before;  // of the ladder alone, on the training steps
  ErrorSummary after;
};

ErrorSummary ErrorsOf(const CollectiveCosts& costs,
                      const std::vector<const CollectiveSamples*>& samples) {
  std::vector<double> errors;
  for (const CollectiveSamples* sample : samples) {
    const Seconds measured = QuantilesOf(sample->accepted).median;
    const Seconds predicted =
        MeasuredSteps(costs.kind, costs.ranks) * costs.step.At(sample->bytes / costs.ranks);
    errors.push_back(std::abs((predicted - measured) / measured));
  }
  return SummarizeErrors(errors);
}

InPlace CorrectInPlace(const std::vector<CollectiveSamples>& training, CollectiveCosts* costs) {
  std::vector<const CollectiveSamples*> own;
  for (const CollectiveSamples& sample : training) {
    if (sample.kind == costs->kind && sample.ranks == costs->ranks) own.push_back(&sample);
  }
  InPlace result;
  result.samples = own.size();
  result.before = ErrorsOf(*costs, own);
  if (own.size() >= kFewestInPlace) {
    std::vector<std::vector<double>> terms;
    std::vector<double> times;
    const double steps = MeasuredSteps(costs->kind, costs->ranks);
    for (const CollectiveSamples* sample : own) {
      terms.push_back({1, costs->step.At(sample->bytes / costs->ranks).value()});
      times.push_back(QuantilesOf(sample->accepted).median.value() / steps);
    }
    const std::vector<double> coefficients = FitNonNegative(terms, times);
    result.added = Seconds(coefficients[0]);
    result.factor = coefficients[1];
    for (CostKnot& knot : costs->step.knots) knot.time = result.added + result.factor * knot.time;
  }
  result.after = ErrorsOf(*costs, own);
  return result;
}

// ---- The parts of the file ----------------------------------------------------------------------

Json SamplesJson(const Learned& learned, const char* where) {
  Json samples = Json::array();
  for (const KernelSamples& sample : learned.kernels) {
    Json entry = {{"where", where},
                  {"ranks", learned.ranks},
                  {"kernel", Name(sample.kernel)},
                  {"dtype", Name(sample.dtype)}};
    if (sample.kernel == Kernel::kGemm) {
      entry["mode"] = Name(sample.mode);
      entry["m"] = sample.work.gemm.m;
      entry["n"] = sample.work.gemm.n;
      entry["k"] = sample.work.gemm.k;
    } else {
      entry["bytes"] = sample.work.bytes.value();
      entry["flops"] = sample.work.flops.value();
    }
    entry["quantiles"] = QuantilesJson(sample.accepted);
    if (IsFew(sample.accepted.size())) entry["few"] = RangeJson(sample.accepted);
    entry["seconds"] = SecondsJson(sample.accepted);
    samples.push_back(std::move(entry));
  }
  for (const CollectiveSamples& sample : learned.collectives) {
    samples.push_back({{"where", where},
                       {"ranks", learned.ranks},
                       {"collective", Name(sample.kind)},
                       {"group", sample.ranks},
                       {"bytes", sample.bytes.value()},
                       {"quantiles", QuantilesJson(sample.accepted)},
                       {"seconds", SecondsJson(sample.accepted)}});
    if (IsFew(sample.accepted.size())) samples.back()["few"] = RangeJson(sample.accepted);
  }
  return samples;
}

Json ProbesJson(const Learned& learned) {
  Json json = Json::array();
  for (const ProbeTally& probe : learned.probes) {
    json.push_back({{"name", probe.name},
                    {"ranks", learned.ranks},
                    {"kept", probe.kept},
                    {"rejected_disturbed", probe.disturbed},
                    {"rejected_stolen", probe.stolen},
                    {"rejected_other_host_state", probe.other_state},
                    {"few", IsFew(probe.kept)}});
    if (probe.hurried) json.back()["waited_no_longer"] = true;
  }
  return json;
}

Json StatesJson(const Learned& learned) {
  Json json = Json::array();
  for (const HostState& state : learned.states)
    json.push_back({{"ping_seconds", state.ping.value()}, {"steps", state.steps}});
  return json;
}

void Append(Json from, Json* to) {
  for (Json& element : from) to->push_back(std::move(element));
}

// Says how many steps counted, of those that ran.
std::string CountSteps(const std::vector<LearnedWorld>& worlds, bool on_gpus = false) {
  uint32_t kept = 0;
  uint32_t all = 0;
  for (const LearnedWorld& world : worlds) {
    for (const Learned* learned : {&world.ladder, &world.steps}) {
      for (const ProbeTally& probe : learned->probes) {
        kept += probe.kept;
        all += probe.kept + probe.disturbed + probe.other_state;
      }
    }
  }
  if (on_gpus) return fmt::format("{} steps", kept);
  return fmt::format("{} of {} steps were left alone by other programs", kept, all);
}

// What the machine did meanwhile, and steps that do not count, by kind.
Json NoiseJson(const CalibrationNoise& noise, const std::vector<LearnedWorld>& worlds) {
  uint32_t stolen = 0;
  uint32_t queued = 0;
  uint32_t other_state = 0;
  for (const LearnedWorld& world : worlds) {
    for (const Learned* learned : {&world.ladder, &world.steps}) {
      for (const ProbeTally& probe : learned->probes) {
        stolen += probe.stolen;
        queued += probe.disturbed - probe.stolen;
        other_state += probe.other_state;
      }
    }
  }
  Json json = ToJson(noise.activity);
  json["copies_bytes_per_second"] = {noise.copies_before.value(), noise.copies_after.value()};
  json["rejected"] = {{"queued", queued}, {"stolen", stolen}, {"other_host_state", other_state}};
  return json;
}

Json RangesJson(const std::vector<ValueRange>& ranges) {
  Json json = Json::array();
  for (const ValueRange& range : ranges) json.push_back({range.least, range.greatest});
  return json;
}

Json KnotsJson(const CollectiveFit& fit) {
  Json json = Json::array();
  for (size_t i = 0; i < fit.ranges.size(); ++i) {
    const Quantiles& range = fit.ranges[i];
    json.push_back(
        {fit.costs.step.knots[i].bytes.value(), range.tenth.value(), range.ninetieth.value()});
  }
  return json;
}

Json AboutJson(const std::vector<LearnedWorld>& worlds, const CalibrationFacts& facts,
               const GpuFacts* gpu) {
  const Learned& first = worlds.front().steps;
  Json about;
  about["tool"] = facts.tool;
  about["commit"] = facts.commit;
  about["date"] = facts.date;
  about["seconds"] = facts.seconds;
  about["backend"] = gpu == nullptr ? "cpu" : "cuda";
  about["transport"] = worlds.front().ladder.transport;
  about["machine"] = ToJson(ThisHost());
  about["libraries"] = first.backend.empty() ? worlds.front().ladder.backend : first.backend;
  about["environment"] = ThisEnvironment();
  about["execution"] = first.blocking ? "blocking" : "threads";
  about["representative"] = gpu == nullptr || gpu->not_representative.empty();
  if (gpu != nullptr) {
    if (!gpu->not_representative.empty()) about["not_representative"] = gpu->not_representative;
    about["gpu"] = gpu->record;
    about["left_out"] = gpu->left_out;
    about["rule"] = "every step counts: ops are timed by the GPU's own clock; medians are used";
  } else {
    about["rule"] =
        "a step counts when each rank lost at most 3 % of its time to other programs and the host "
        "was in its more frequent state";
  }
  about["steps"] = CountSteps(worlds, gpu != nullptr);
  if (facts.noise) about["noise"] = NoiseJson(*facts.noise, worlds);
  about["probes"] = Json::array();
  about["host_states"] = Json::array();
  for (const LearnedWorld& world : worlds) {
    for (const Learned* learned : {&world.ladder, &world.steps}) {
      Append(ProbesJson(*learned), &about["probes"]);
      Append(StatesJson(*learned), &about["host_states"]);
    }
  }
  return about;
}

// Fits kernels to worlds whose ranks had a core each, if they need one.
MeasuredKernels KernelsOf(const std::vector<LearnedWorld>& worlds, const CalibrationFacts& facts,
                          std::optional<uint32_t> cores, Json* fits) {
  std::vector<KernelSamples> samples;
  for (const LearnedWorld& world : worlds) {
    if (cores && world.steps.ranks > *cores) continue;
    samples.insert(samples.end(), world.steps.kernels.begin(), world.steps.kernels.end());
  }
  if (samples.empty()) {
    const std::string who = facts.noise ? WhoWasInTheWay(facts.noise->activity) : "";
    throw Error(fmt::format(
        "nothing could be learned about kernels: {}{}; stop the others, or give this program the "
        "cores to itself (chrt --fifo 10 rehearse calibrate ...)",
        CountSteps(worlds), who.empty() ? "" : ", of whom " + who));
  }
  MeasuredKernels measured{worlds.front().steps.computes_in, {}};
  for (KernelFit& fit : FitKernels(samples)) {
    Json entry = {{"kernel", Name(fit.costs.kernel)}};
    if (fit.costs.kernel == Kernel::kGemm) entry["mode"] = Name(fit.costs.mode);
    entry["dtype"] = Name(fit.costs.dtype);
    entry["points"] = fit.costs.points.size();
    entry["held_out_errors"] = ToJson(fit.held_out);
    entry["coefficient_ranges"] = RangesJson(fit.ranges);
    fits->push_back(std::move(entry));
    measured.kernels.push_back(std::move(fit.costs));
  }
  return measured;
}

MeasuredCollectives CollectivesOf(const LearnedWorld& world, Json* fits) {
  MeasuredCollectives measured;
  measured.ranks = world.ladder.ranks;
  measured.transport = world.ladder.transport;
  measured.computes_in = world.ladder.computes_in;
  for (CollectiveFit& fit : FitCollectives(world.ladder.collectives)) {
    const Json knots = KnotsJson(fit);  // of the ladder
    const InPlace in_place = CorrectInPlace(world.steps.collectives, &fit.costs);
    fits->push_back({{"ranks", measured.ranks},
                     {"collective", Name(fit.costs.kind)},
                     {"group", fit.costs.ranks},
                     {"form", "piecewise linear in the bytes of a step"},
                     {"held_out_errors", ToJson(fit.held_out)},
                     {"step_ranges", knots},
                     {"straight_line",
                      {{"alpha_seconds", fit.line.alpha.value()},
                       {"beta_seconds_per_byte", fit.line.beta},
                       {"r_squared", fit.line.r_squared},
                       {"held_out_errors", ToJson(fit.line_errors)}}},
                     {"in_place",
                      {{"added_seconds", in_place.added.value()},
                       {"factor", in_place.factor},
                       {"errors_without", ToJson(in_place.before)},
                       {"errors_with", ToJson(in_place.after)}}}});
    measured.collectives.push_back(std::move(fit.costs));
  }
  return measured;
}

// Makes what calibrations of CPUs and GPUs have in common; `gpu` is null for CPUs.
Calibration Make(const std::vector<LearnedWorld>& worlds, const CalibrationFacts& facts,
                 const GpuFacts* gpu) {
  CHECK(!worlds.empty());
  const HostMachine host = ThisHost();
  Calibration calibration;
  calibration.cluster = "local-cpu";
  calibration.about = AboutJson(worlds, facts, gpu);
  calibration.origin = {MachineName(host.processor, host.cores), facts.date,
                        calibration.about["representative"].get<bool>()};
  calibration.samples = Json::array();
  for (const LearnedWorld& world : worlds) {
    Append(SamplesJson(world.ladder, "ladder"), &calibration.samples);
    Append(SamplesJson(world.steps, "steps"), &calibration.samples);
  }
  calibration.fit["kernels"] = Json::array();
  calibration.kernels =
      KernelsOf(worlds, facts, gpu == nullptr ? std::optional(host.cores) : std::nullopt,
                &calibration.fit["kernels"]);
  calibration.fit["collectives"] = Json::array();
  for (const LearnedWorld& world : worlds) {
    if (world.ladder.collectives.empty()) continue;
    calibration.collectives.push_back(CollectivesOf(world, &calibration.fit["collectives"]));
  }
  return calibration;
}

void AddInterference(const std::vector<EncounterSamples>& encounters, uint32_t multiprocessors,
                     Calibration* calibration) {
  const auto interference = FitInterference(encounters, multiprocessors);
  if (!interference) return;
  calibration->slowdown = interference->slowdown;
  Json& fit = calibration->fit["interference"];
  fit["form"] = "(1 + gemm) times waves beside communication over waves alone";
  fit["errors_of_a_plain_factor"] = ToJson(interference->plain_errors);
  fit["errors_of_waves"] = ToJson(interference->wave_errors);
  for (const EncounterSamples& encounter : encounters)
    fit["encounters"].push_back(ToJson(encounter));
}

// Schedules for which it was not waited until enough steps were left alone. How far their samples
// lie apart: the greatest over the least, in the median over what was measured with few of them.
std::string FewSteps(const Calibration& calibration) {
  size_t hurried = 0;
  size_t few = 0;
  size_t none = 0;
  size_t all = 0;
  if (!calibration.about.is_object()) return "";
  for (const Json& probe : calibration.about.value("probes", Json::array())) {
    ++all;
    if (probe.contains("waited_no_longer")) ++hurried;
    if (probe.at("kept") == 0)
      ++none;
    else if (probe.value("few", false))
      ++few;
  }
  if (hurried == 0) return "";
  std::vector<double> apart;
  for (const Json& sample : calibration.samples) {
    if (sample.contains("few") && sample.at("seconds").size() > 1)
      apart.push_back(sample["few"].at(1).get<double>() / sample["few"].at(0).get<double>());
  }
  std::string text = fmt::format(
      "so few steps were left alone that it was not waited for more: of {} schedules, {} have none "
      "and {} fewer than {}",
      all, none, few, kFewSamples);
  if (apart.empty()) return text;
  const auto middle = apart.begin() + static_cast<std::ptrdiff_t>(apart.size() / 2);
  std::nth_element(apart.begin(), middle, apart.end());
  return text + fmt::format(", whose longest times are {:.2f} times their shortest in the median",
                            *middle);
}

}  // namespace

std::vector<std::string> DoubtsOf(const Calibration& calibration) {
  constexpr double kMost = 0.10;
  std::vector<std::string> doubts;
  std::string products;
  for (const Json& fit : calibration.fit.value("kernels", Json::array())) {
    const Json& errors = fit.at("held_out_errors");
    const auto median = errors.at("median").get<double>();
    if (fit.at("kernel") != Name(Kernel::kGemm) || errors.at("samples") == 0 || median <= kMost)
      continue;
    products += fmt::format("{}{} {} by {:.0f} %", products.empty() ? "" : ", ",
                            fit.at("mode").get<std::string>(), fit.at("dtype").get<std::string>(),
                            100 * median);
  }
  if (!products.empty())
    doubts.push_back(
        fmt::format("products that were held out are off in the median, {}", products));
  if (const std::string few = FewSteps(calibration); !few.empty()) doubts.push_back(few);
  if (!calibration.about.is_object() || !calibration.about.contains("noise")) return doubts;
  const Json& copies = calibration.about["noise"].at("copies_bytes_per_second");
  const auto before = copies.at(0).get<double>();
  const auto after = copies.at(1).get<double>();
  if (std::max(before, after) > (1 + kMost) * std::min(before, after)) {
    doubts.push_back(fmt::format("memory was copied at {} before and at {} after",
                                 Print(BytesPerSecond(before)), Print(BytesPerSecond(after))));
  }
  return doubts;
}

namespace {

// Joins them to what the calibration says already.
void NoteDoubts(Calibration* calibration) {
  const std::vector<std::string> doubts = DoubtsOf(*calibration);
  if (doubts.empty()) return;
  Json& why = calibration->about["not_representative"];
  const std::string joined = fmt::format("{}", fmt::join(doubts, "; "));
  why = why.is_string() ? why.get<std::string>() + "; " + joined : joined;
  calibration->about["representative"] = false;
  calibration->origin.is_representative = false;
}

}  // namespace

Calibration MakeCalibration(const std::vector<LearnedWorld>& worlds, const CalibrationFacts& facts,
                            const std::vector<EncounterSamples>& encounters) {
  Calibration calibration = Make(worlds, facts, nullptr);
  calibration.host_cores = ThisHost().cores;
  AddInterference(encounters, /*multiprocessors=*/1, &calibration);
  NoteDoubts(&calibration);
  return calibration;
}

Calibration MakeGpuCalibration(const std::vector<LearnedWorld>& worlds,
                               const CalibrationFacts& facts, const GpuFacts& gpu) {
  Calibration calibration = Make(worlds, facts, &gpu);
  calibration.launch_overhead = gpu.launch;
  calibration.fit["overheads"] = gpu.overheads;
  AddInterference(gpu.encounters, gpu.multiprocessors, &calibration);
  NoteDoubts(&calibration);
  return calibration;
}

std::string DescribeCalibration(const Calibration& calibration) {
  std::string text;
  const auto errors = [](const Json& json) {
    if (json.at("samples").get<size_t>() == 0) return std::string("-");
    return fmt::format("{:.1f} / {:.1f} %", 100 * json.at("median").get<double>(),
                       100 * json.at("ninetieth_percentile").get<double>());
  };
  const Json& about = calibration.about;
  if (about.contains("gpu")) {
    const Json device = about["gpu"].value("device", Json::object());
    text += fmt::format("{} beside ", device.value("name", std::string("GPU")));
  }
  text += fmt::format("{}, {}\n", calibration.origin.machine, about.at("steps").get<std::string>());
  if (about.contains("noise")) {
    const Json& noise = about["noise"];
    text += fmt::format("meanwhile others took {:.1f} cores, {:.1f} % were stolen\n",
                        noise.at("cores_of_others").get<double>(),
                        100 * noise.at("stolen_share").get<double>());
  }
  text += "\n";
  text += fmt::format("{:<32} {:>7} {:>16}\n", "kernel", "points", "held-out error");
  text += fmt::format("{:<32} {:>7} {:>16}\n", "", "", "median / 90 %");
  for (const Json& fit : calibration.fit.at("kernels")) {
    text += fmt::format("{:<32} {:>7} {:>16}\n",
                        fit.at("kernel").get<std::string>() +
                            (fit.contains("mode") ? " " + fit.at("mode").get<std::string>() : "") +
                            " " + fit.at("dtype").get<std::string>(),
                        fit.at("points").get<size_t>(), errors(fit.at("held_out_errors")));
  }
  if (!calibration.about.at("representative").get<bool>()) {
    text += fmt::format("\nNot representative: {}\n",
                        calibration.about.at("not_representative").get<std::string>());
  }
  if (calibration.collectives.empty()) return text;
  text += "\n";
  text += fmt::format("{:<32} {:>16} {:>16} {:>16} {:>16}\n", "collective", "held-out error",
                      "straight line", "in place before", "in place after");
  for (const Json& fit : calibration.fit.at("collectives")) {
    text += fmt::format(
        "{:<32} {:>16} {:>16} {:>16} {:>16}\n",
        fmt::format("{} of {} among {}", fit.at("collective").get<std::string>(),
                    fit.at("group").get<uint32_t>(), fit.at("ranks").get<uint32_t>()),
        errors(fit.at("held_out_errors")), errors(fit.at("straight_line").at("held_out_errors")),
        errors(fit.at("in_place").at("errors_without")),
        errors(fit.at("in_place").at("errors_with")));
  }
  return text;
}

}  // namespace rehearse
