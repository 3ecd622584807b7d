#include "scenarios/readers/arrival_options.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/readers/device_floor.h"
#include "scenarios/readers/micro_batch_size.h"
#include "scenarios/readers/scenario_shape.h"
#include "scenarios/readers/software.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint32_t kMostDevices = 1u << 24;

constexpr ValueName<QueueOrder> kOrderNames[] = {
    {"fifo", QueueOrder::kFifo}, {"backfill", QueueOrder::kBackfill}, {"fit", QueueOrder::kFit}};

constexpr ValueName<bool> kSharingNames[] = {{"simulated", true}, {"none", false}};

constexpr char kAssumedWork[] = R"({
  "name": "gpt-1.3b",
  "model": {"preset": "gpt-1.3b"},
  "training": {"batch": 4, "sequence": 1024, "recomputation": "full"},
  "strategy": {"kind": "data-parallel", "data": 1, "overlap_gradients": true}})";

bool IsWhole(double value) { return value >= 1 && value == std::floor(value); }

bool IsPossible(const SizedWork& work, uint32_t devices) {
  if (devices > work.most_devices) return false;
  for (const auto& [path, value] : work.per_device) {
    if (!IsWhole(value * devices)) return false;
  }
  return true;
}

const ObjectShape& WorkShape() {
  static const ObjectShape shape = {
      "work of arriving jobs",
      "What a job computes that a trace only gives a number of devices.",
      {{"scenario", Either({AText("path of a file, from this one"), ObjectOf(ScenarioShape)}),
        Required(), "whose model, training, strategy and pipeline count", "\"gpt.json\""},
       {"most_devices", AWhole(1, kMostDevices), Optional("any"),
        "jobs with more have a later work of the list", "8"},
       {"per_device", Anything("paths in the scenario, and numbers"), Optional("none"),
        "values that are so many times the number of a job's devices",
        R"({"strategy.data": 0.125, "training.batch": 1})"}}};
  return shape;
}

SizedWork ReadWork(const JsonReader& object) {
  const JsonReader reader = object.As(WorkShape());
  const JsonReader scenario = reader.At("scenario");
  JsonDocument document =
      scenario.IsString()
          ? scenario.Open(scenario.Text())
          : JsonDocument::FromValue(scenario.value(), scenario.place(), scenario.FilesOfDocument());
  if (scenario.IsString()) scenario.Change(&document);
  if (document.value().is_object() && document.value().contains("arrivals"))
    scenario.Fail("a job computes one step; expected a scenario without \"arrivals\"");
  SizedWork work;
  work.document = std::make_shared<const JsonDocument>(std::move(document));
  work.most_devices =
      reader.Has("most_devices")
          ? static_cast<uint32_t>(reader.At("most_devices").Integer(1, kMostDevices))
          : kMostDevices;
  if (reader.Has("per_device")) {
    const JsonReader values = reader.At("per_device");
    work.per_device_place = values.place();
    if (!values.IsObject()) values.Expected("paths in the scenario, and numbers");
    for (const auto& [path, value] : values.Members()) {
      work.per_device.emplace_back(path, value.Number(1e-9, 1e9));
    }
  }
  return work;
}

void ReadTrace(const JsonReader& reader, ArrivalOptions* options) {
  JsonDocument document = reader.Open(reader.Text(), InputSize::kLarge);
  reader.Change(&document);
  options->trace = std::make_shared<const JobTrace>(ReadJobTrace(document.Root()));
}

void ReadWorks(const JsonReader& reader, ArrivalOptions* options) {
  for (const JsonReader& entry : reader.Elements()) options->work.push_back(ReadWork(entry));
  if (options->work.empty()) reader.Expected("at least one work");
}

// Nobody writes these options.
void WriteNothing(const ArrivalOptions& /*options*/, nlohmann::ordered_json* /*to*/) {}

SizedWork AssumedWork() {
  return {std::make_shared<const JsonDocument>(
              JsonDocument::FromText(kAssumedWork, "work that is assumed")),
          kMostDevices,
          {{"strategy.data", 1}, {"training.batch", 4}},
          {}};
}

}  // namespace

size_t ArrivalOptions::WorkOf(uint32_t devices) const {
  for (size_t i = 0; i < work.size(); ++i) {
    if (IsPossible(work[i], devices)) return i;
  }
  throw Error(place, fmt::format("no work is one for a job with {} device{}; expected one whose "
                                 "\"most_devices\" is as many, and whose \"per_device\" come out "
                                 "as whole numbers",
                                 devices, devices == 1 ? "" : "s"));
}

const Fields<ArrivalOptions>& ArrivalFields() {
  using Arrivals = ArrivalOptions;
  constexpr double kMostLoad = 1e6;
  static const Fields<Arrivals> fields(
      "arrivals", "Jobs as they come to the cluster, in place of a step.",
      {{"trace", kItself,
        ReadBy(AText("path of a job trace, from this one"), ReadTrace, WriteNothing), Required(),
        "which jobs come when; rehearse import makes them of public traces", "\"philly.json\""},
       {"first", &Arrivals::first, AWhole(1, kMostDevices), Optional("all"),
        "only so many of its jobs", "1000"},
       {"load", &Arrivals::load, ANumber(1 / kMostLoad, kMostLoad), Usual(),
        "they come so many times as fast", "1.5"},
       {"order", &Arrivals::order, OneOf(kOrderNames), Usual(),
        "who may begin: nobody before the first that waits; those that do not delay it; whoever "
        "fits"},
       {"placement", &Arrivals::placement, OneOf(kPlacementOrders), Usual(),
        "which of the free units a job takes"},
       {"unit", &Arrivals::unit, AWhole(1, kMostDevicesOfUnit), Optional(kUsualUnitWords),
        "devices that are given out together", "8"},
       {"sharing", &Arrivals::shares, OneOf(kSharingNames), Usual(),
        "whether jobs whose traffic meets slow each other down"},
       {"work", kItself, ReadBy(ListOf(ObjectOf(WorkShape)), ReadWorks, WriteNothing),
        Optional(kAssumedWorkWords), "what jobs compute",
        R"([{"scenario": "gpt.json", "per_device": {"strategy.data": 1}}])"}});
  return fields;
}

ArrivalOptions ReadArrivals(const JsonReader& reader) {
  ArrivalOptions options = ArrivalFields().Read(reader);
  options.place = reader.place();
  options.is_assumed = options.work.empty();
  if (options.is_assumed) options.work.push_back(AssumedWork());
  return options;
}

JobRequest RequestOf(const SizedWork& work, uint32_t devices, const Cluster& cluster) {
  JsonDocument document = *work.document;
  for (const auto& [path, value] : work.per_device)
    document.Set(fmt::format("{}={:.0f}", path, value * devices), work.per_device_place);
  JobRequest request = ReadWorkOn(std::move(document), cluster);
  const uint32_t ranks = std::get<Workload>(request.work).ranks();
  if (ranks != devices) {
    throw Error(work.document->Root().place(),
                fmt::format("the work has {} ranks, of a job with {} device{}; expected as many, "
                            "for instance by \"per_device\"",
                            ranks, devices, devices == 1 ? "" : "s"));
  }
  request.placement.resize(ranks);
  std::iota(request.placement.begin(), request.placement.end(), 0u);
  request.nominal_peak = FlopsPerSecond(1);  // nobody asks for utilisation
  return request;
}

}  // namespace rehearse
