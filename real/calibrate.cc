#include "real/calibrate.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "real/cost_fit.h"
#include "sim/error.h"
#include "sim/units.h"
#include "topology/measured_costs_json.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFewestInPlace =
    6;  // collectives of training steps that a correction is made from
constexpr DType kComputesIn = DType::kFp32;

Json ToJson(const ErrorSummary& errors) {
  return {{"samples", errors.samples},
          {"median", errors.median},
          {"ninetieth_percentile", errors.ninetieth},
          {"largest", errors.largest}};
}

Json SecondsJson(const std::vector<Seconds>& samples) {
  Json json = Json::array();
  for (const Seconds sample : samples) json.push_back(sample.value());
  return json;
}

Json QuantilesJson(const std::vector<Seconds>& samples) {
  const Quantiles quantiles = QuantilesOf(samples);
  return {quantiles.tenth.value(), quantiles.median.value(), quantiles.ninetieth.value()};
}

// ---- Collectives in place -----------------------------------------------------------------------

struct InPlace {
  Seconds added;  // a step
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
    Json entry = {{"where", where}, {"ranks", learned.ranks}, {"kernel", Name(sample.kernel)}};
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
                    {"rejected_other_host_state", probe.other_state}});
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

// Steps that counted, of those that ran.
std::string CountSteps(const std::vector<LearnedWorld>& worlds) {
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
  return fmt::format("{} of {} steps were left alone by other programs", kept, all);
}

Json AboutJson(const std::vector<LearnedWorld>& worlds, const CalibrationFacts& facts) {
  const Learned& first = worlds.front().steps;
  Json about;
  about["tool"] = facts.tool;
  about["commit"] = facts.commit;
  about["date"] = facts.date;
  about["seconds"] = facts.seconds;
  about["backend"] = "cpu";
  about["transport"] = worlds.front().ladder.transport;
  about["machine"] = rehearse::ToJson(ThisHost());
  about["libraries"] = first.backend.empty() ? worlds.front().ladder.backend : first.backend;
  about["environment"] = ThisEnvironment();
  about["execution"] = first.blocking ? "blocking" : "threads";
  about["representative"] = true;
  about["rule"] =
      "a step counts when each rank lost at most 3 % of its time to other programs and the host "
      "was in its more frequent state";
  about["steps"] = CountSteps(worlds);
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

}  // namespace

Calibration MakeCalibration(const std::vector<LearnedWorld>& worlds,
                            const CalibrationFacts& facts) {
  CHECK(!worlds.empty());
  Calibration calibration;
  calibration.cluster = "local-cpu";
  const Host host = ThisHost();
  calibration.host_cores = host.cores;
  calibration.origin = {MachineName(host.processor, host.cores), facts.date, true};
  calibration.about = AboutJson(worlds, facts);
  calibration.samples = Json::array();
  calibration.fit["kernels"] = Json::array();
  calibration.fit["collectives"] = Json::array();

  std::vector<KernelSamples> kernels;
  for (const LearnedWorld& world : worlds) {
    Append(SamplesJson(world.ladder, "ladder"), &calibration.samples);
    Append(SamplesJson(world.steps, "steps"), &calibration.samples);
    if (world.steps.ranks > host.cores) continue;
    kernels.insert(kernels.end(), world.steps.kernels.begin(), world.steps.kernels.end());
  }
  if (kernels.empty()) {
    throw Error(fmt::format(
        "nothing could be learned about kernels: {}; stop them, or give this program the cores to "
        "itself (chrt --fifo 10 rehearse calibrate ...)",
        CountSteps(worlds)));
  }
  calibration.kernels = MeasuredKernels{kComputesIn, {}};
  for (KernelFit& fit : FitKernels(kernels)) {
    Json entry = {{"kernel", Name(fit.costs.kernel)}};
    if (fit.costs.kernel == Kernel::kGemm) entry["mode"] = Name(fit.costs.mode);
    entry["points"] = fit.costs.points.size();
    entry["held_out_errors"] = ToJson(fit.held_out);
    calibration.fit["kernels"].push_back(std::move(entry));
    calibration.kernels->kernels.push_back(std::move(fit.costs));
  }

  for (const LearnedWorld& world : worlds) {
    if (world.ladder.collectives.empty()) continue;
    MeasuredCollectives measured;
    measured.ranks = world.ladder.ranks;
    measured.transport = world.ladder.transport;
    measured.computes_in = kComputesIn;
    for (CollectiveFit& fit : FitCollectives(world.ladder.collectives)) {
      const InPlace in_place = CorrectInPlace(world.steps.collectives, &fit.costs);
      calibration.fit["collectives"].push_back({{"ranks", measured.ranks},
                                                {"collective", Name(fit.costs.kind)},
                                                {"group", fit.costs.ranks},
                                                {"form", "piecewise linear in the bytes of a step"},
                                                {"held_out_errors", ToJson(fit.held_out)},
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
    calibration.collectives.push_back(std::move(measured));
  }
  return calibration;
}

std::string DescribeCalibration(const Calibration& calibration) {
  std::string text;
  const auto errors = [](const Json& json) {
    if (json.at("samples").get<size_t>() == 0) return std::string("-");
    return fmt::format("{:.1f} / {:.1f} %", 100 * json.at("median").get<double>(),
                       100 * json.at("ninetieth_percentile").get<double>());
  };
  text += fmt::format("{}, {}\n", calibration.origin.machine,
                      calibration.about.at("steps").get<std::string>());
  text += "\n";
  text += fmt::format("{:<32} {:>7} {:>16}\n", "kernel", "points", "held-out error");
  text += fmt::format("{:<32} {:>7} {:>16}\n", "", "", "median / 90 %");
  for (const Json& fit : calibration.fit.at("kernels")) {
    text += fmt::format("{:<32} {:>7} {:>16}\n",
                        fit.at("kernel").get<std::string>() +
                            (fit.contains("mode") ? " " + fit.at("mode").get<std::string>() : ""),
                        fit.at("points").get<size_t>(), errors(fit.at("held_out_errors")));
  }
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
