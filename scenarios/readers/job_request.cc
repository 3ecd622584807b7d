#include "scenarios/readers/job_request.h"

#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "scenarios/readers/micro_batch_size.h"
#include "scenarios/readers/model_reader.h"
#include "scenarios/readers/pipeline_reader.h"
#include "scenarios/readers/placement.h"
#include "scenarios/readers/reader_cache.h"
#include "scenarios/readers/scenario_shape.h"
#include "scenarios/readers/software.h"
#include "scenarios/readers/strategy_reader.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/visible_text.h"
#include "sim/report/result.h"
#include "sim/schedule/schedule_json.h"

namespace rehearse {

std::optional<DType> PeakTypeOf(const JobRequest& request) {
  const auto* workload = std::get_if<Workload>(&request.work);
  return workload != nullptr ? workload->training.precision
                             : MainDType(std::get<Schedule>(request.work));
}

namespace {

constexpr int64_t kMostSteps = 10'000;
constexpr Seconds kLatestStart(1e6);

std::string MeshText(const Workload& workload) {
  std::string text;
  for (const MeshAxis& axis : workload.strategy.mesh.axes()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis.name, axis.size);
  }
  if (workload.pipeline) text += fmt::format(" x stages {}", workload.pipeline->places.ranks);
  return text;
}

// From this generation on, matrix units read 8-bit operands along either side (Blackwell).
constexpr uint32_t kReadsColumns = 100;

// Of the cluster's first device.
uint32_t CapabilityOf(const Cluster& cluster) { return cluster.DeviceOf(0).compute_capability; }

// What a scenario says about its step.
JobRequest ReadStep(const JsonReader& root, uint32_t capability, ReaderCache* cache) {
  ModelAndTraining read = cache != nullptr
                              ? cache->ModelOf(root.At("model"), root.At("training"))
                              : ReadModelAndTraining(root.At("model"), root.At("training"));
  read.training.reads_columns = capability >= kReadsColumns;
  const Network& network = *read.network;
  const Training& training = read.training;
  const JsonReader strategy_reader = root.At("strategy");
  Strategy strategy = ReadStrategy(strategy_reader, network);
  JobRequest request;
  const JsonReader training_reader = root.At("training");
  request.attention_place = training_reader.Has("attention")
                                ? training_reader.At("attention").place()
                                : training_reader.place();
  std::optional<StagePipeline> pipeline;
  if (root.Has("pipeline")) {
    pipeline = ReadPipeline(root.At("pipeline"), network, training, strategy);
  }
  request.work = Workload{read.network, training, std::move(strategy), std::move(pipeline)};
  request.place = strategy_reader.place();
  if (root.Has("software")) request.software = SoftwareOf(root.value(), capability);
  if (root.Has("simulator")) {
    request.collective_pins = ReadCollectivePins(root.At("simulator").As(SimulatorShape()));
  }
  return request;
}

std::vector<uint32_t> AllDevices(const Cluster& cluster) {
  std::vector<uint32_t> devices(cluster.device_count());
  std::iota(devices.begin(), devices.end(), 0u);
  return devices;
}

uint32_t RanksOf(const JobRequest& request) {
  const auto* workload = std::get_if<Workload>(&request.work);
  return workload != nullptr ? workload->ranks() : std::get<Schedule>(request.work).ranks();
}

// Mean over the job's devices; zero if it computes nothing.
FlopsPerSecond MeanPeak(const Cluster& nominal, const JobRequest& request) {
  const std::optional<DType> precision = PeakTypeOf(request);
  if (!precision) return {};
  std::vector<uint32_t> devices(nominal.device_specs().size());
  for (const uint32_t device : request.placement) ++devices[nominal.SpecOf(device)];
  FlopsPerSecond sum;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] > 0) sum += devices[i] * PeakOf(nominal.device_specs()[i], *precision);
  }
  return sum / static_cast<double>(request.placement.size());
}

// Its name in the file, or the file's: "two-ranks" for two-ranks.schedule.json.gz.
std::string NameOfSchedule(const JsonReader& document) {
  const ScheduleTitle title = ReadScheduleTitle(document);
  if (!title.name.empty() || !document.place().pointer.empty()) return title.name;
  const std::string file = std::filesystem::path(document.place().file).filename().string();
  return VisibleText(file.substr(0, file.find('.')));
}

// The step that the scenario itself describes.
JobRequest ReadOwnStep(const JsonReader& root, const Cluster& cluster, ReaderCache* cache) {
  if (!root.Has("strategy"))
    root.Fail("missing key \"strategy\"; expected one, or `rehearse search`, which finds the best");
  JobRequest request = ReadStep(root, CapabilityOf(cluster), cache);
  request.name = root.At("name").String();
  const auto& workload = std::get<Workload>(request.work);
  const uint32_t ranks = workload.ranks();
  if (root.Has("placement")) {
    const JsonReader placement = root.At("placement");
    if (placement.IsObject()) {
      request.busy = BusyClusterFields().Read(placement);
      CheckBusyCluster(placement, *request.busy, cluster, ranks);
      request.placement =
          DrawPlacement(*request.busy, cluster, ranks, request.busy->seed.value_or(0));
    } else {
      const std::vector<bool> nothing_taken(cluster.device_count());
      request.placement = ReadPlacement(placement, cluster, ranks, nothing_taken);
    }
    return request;
  }
  if (ranks != cluster.device_count()) {
    root.At("strategy")
        .Fail(fmt::format("a mesh of {} = {} ranks does not fit cluster \"{}\" with {} "
                          "devices; expected their product to be {}{}",
                          MeshText(workload), ranks, cluster.name(), cluster.device_count(),
                          cluster.device_count(),
                          ranks < cluster.device_count() ? ", or a \"placement\"" : ""));
  }
  request.placement = AllDevices(cluster);
  return request;
}

JobRequest ReadScenarioOfJob(const JsonReader& object, const Cluster& cluster) {
  const JsonReader root = object.As(ScenarioShape());
  if (root.Has("jobs")) root.At("jobs").Fail("a job cannot have jobs of its own");
  JobRequest request = ReadStep(root, CapabilityOf(cluster), nullptr);
  if (root.Has("name")) request.name = root.At("name").String();
  return request;
}

JobRequest ReadScheduleOfJob(const JsonReader& document) {
  JobRequest request;
  request.name = NameOfSchedule(document);
  request.work = ReadSchedule(document);
  request.place = document.place();
  if (document.Has("roles")) {
    for (const JsonReader& role : document.At("roles").Elements())
      request.role_places.push_back(role.place());
  } else {
    request.role_places.push_back(document.place());
  }
  return request;
}

// What is given here, or in the file that is named.
JobRequest ReadScenarioHereOrThere(const JsonReader& reader, const Cluster& cluster) {
  const bool has_software = reader.IsObject() && reader.value().contains("software");
  const bool has_size = reader.IsObject() && reader.value().contains("training") &&
                        reader.value()["training"].contains("micro_batch_size");
  if (!reader.IsString() && !has_software && !has_size) return ReadScenarioOfJob(reader, cluster);
  JsonDocument document =
      reader.IsString()
          ? reader.Open(reader.Text())
          : JsonDocument::FromValue(reader.value(), reader.place(), reader.FilesOfDocument());
  if (reader.IsString()) reader.Change(&document);
  return ReadWorkOn(std::move(document), cluster);
}

JobRequest ReadScheduleHereOrThere(const JsonReader& reader) {
  if (!reader.IsString()) return ReadScheduleOfJob(reader);
  JsonDocument document = reader.Open(reader.Text(), InputSize::kLarge);
  reader.Change(&document);
  return ReadScheduleOfJob(document.Root());
}

JobRequest ReadWorkOfJob(const JsonReader& entry, const Cluster& cluster) {
  if (entry.Has("scenario") == entry.Has("schedule"))
    entry.Fail("a job has a \"scenario\" or a \"schedule\"; expected one of them");
  return entry.Has("scenario") ? ReadScenarioHereOrThere(entry.At("scenario"), cluster)
                               : ReadScheduleHereOrThere(entry.At("schedule"));
}

// Everything but where its ranks are.
JobRequest ReadJob(const JsonReader& object, const Cluster& cluster,
                   const std::vector<CollectivePin>& pins_of_all, std::set<std::string>* names) {
  const JsonReader entry = object.As(JobShape());
  JobRequest request = ReadWorkOfJob(entry, cluster);
  request.collective_pins.insert(request.collective_pins.begin(), pins_of_all.begin(),
                                 pins_of_all.end());
  if (entry.Has("name")) request.name = entry.At("name").String();
  if (request.name.empty()) entry.Fail("neither the job nor what it plays has a \"name\"");
  if (request.name.find('/') != std::string::npos) {
    entry.Fail(
        fmt::format("the job is called \"{}\"; expected a \"name\" without a slash, which "
                    "separates jobs from their axes",
                    request.name));
  }
  const std::string name = request.name;
  for (int i = 2; !names->insert(request.name).second; ++i) {
    request.name = fmt::format("{} ({})", name, i);
  }
  request.start = entry.At("start").Duration();
  request.repeat = entry.At("repeat").Whole<uint32_t>();
  return request;
}

// Jobs that list devices come first: the others can choose.
void PlaceJobs(const std::vector<JsonReader>& entries, const Cluster& cluster,
               std::vector<JobRequest>* requests) {
  std::vector<bool> is_taken(cluster.device_count());
  for (const bool lists : {true, false}) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const JsonReader placement = entries[i].At("placement");
      if (ListsDevices(placement) != lists) continue;
      JobRequest& request = (*requests)[i];
      request.placement = ReadPlacement(placement, cluster, RanksOf(request), is_taken);
      for (const uint32_t device : request.placement) {
        if (is_taken[device])
          placement.Fail(fmt::format("device {} belongs to an earlier job", device));
        is_taken[device] = true;
      }
    }
  }
}

std::vector<JobRequest> ReadListedJobs(const JsonReader& root, const Cluster& cluster) {
  for (const char* key : {"model", "training", "strategy", "pipeline", "placement", "software"}) {
    if (root.Has(key)) root.At(key).Fail("belongs to each job where there are \"jobs\"");
  }
  const std::vector<JsonReader> entries = root.At("jobs").Elements();
  if (entries.empty()) root.At("jobs").Expected("at least one job");
  std::vector<CollectivePin> pins;
  if (root.Has("simulator")) pins = ReadCollectivePins(root.At("simulator").As(SimulatorShape()));
  std::vector<JobRequest> requests;
  std::set<std::string> names;
  for (const JsonReader& entry : entries) requests.push_back(ReadJob(entry, cluster, pins, &names));
  PlaceJobs(entries, cluster, &requests);
  return requests;
}

}  // namespace

const ObjectShape& JobShape() {
  static const ObjectShape shape = {
      "job",
      "A step, or several, on some of the cluster's devices; it has a scenario or a schedule.",
      {{"name", AText(), Optional("that of its scenario or schedule"),
        "what results call it, without a slash", "\"first\""},
       {"scenario", Either({AText("path of a file, from this one"), ObjectOf(ScenarioShape)}),
        Optional("a schedule"), "the scenario whose model, training, strategy and algorithms count",
        "\"a.json\""},
       {"schedule", Anything("path of a file, or a schedule (rehearse schema schedule)"),
        Optional("a scenario"), "a schedule, as rehearse plan writes it",
        "\"step.schedule.json.gz\""},
       {"placement", PlacementShape(), Required(), "which device each rank runs on", "\"0-63\""},
       {"start", ADurationUpTo(kLatestStart), Default("\"0s\""), "nothing begins before this time",
        "\"5ms\""},
       {"repeat", AWhole(1, kMostSteps), Default("1"), "how many steps, back to back", "3"}}};
  return shape;
}

JobRequest ReadWorkOn(JsonDocument document, const Cluster& cluster) {
  ApplySoftware(&document, CapabilityOf(cluster));
  ResolveMicroBatchSize(&document);
  return ReadScenarioOfJob(document.Root(), cluster);
}

JobRequest RequestOf(const JsonReader& schedule, const Cluster& cluster, const Cluster& nominal,
                     const std::vector<uint32_t>& devices) {
  JobRequest request = ReadScheduleOfJob(schedule);
  const uint32_t ranks = RanksOf(request);
  if (devices.empty() && ranks != cluster.device_count()) {
    schedule.At("ranks").Fail(fmt::format(
        "a schedule of {} ranks does not fit cluster \"{}\" with {} devices{}", ranks,
        cluster.name(), cluster.device_count(),
        ranks < cluster.device_count()
            ? fmt::format("; rehearse run --ranks 0-{} places it on some of them, as a scenario "
                          "with \"jobs\" does",
                          ranks - 1)
            : ""));
  }
  if (!devices.empty() && devices.size() != ranks) {
    schedule.At("ranks").Fail(
        fmt::format("a schedule of {} ranks is placed on {} devices", ranks, devices.size()));
  }
  const std::set<uint32_t> different(devices.begin(), devices.end());
  if (different.size() != devices.size())
    schedule.At("ranks").Fail("a device has more than one of a schedule's ranks");
  request.placement = devices.empty() ? AllDevices(cluster) : devices;
  request.nominal_peak = MeanPeak(nominal, request);
  return request;
}

std::vector<JobRequest> ReadJobRequests(const JsonReader& root, const Cluster& cluster,
                                        const Cluster& nominal, ReaderCache* cache) {
  std::vector<JobRequest> requests;
  if (root.Has("jobs")) {
    requests = ReadListedJobs(root, cluster);
  } else {
    requests.push_back(ReadOwnStep(root, cluster, cache));
  }
  for (JobRequest& request : requests) {
    request.nominal_peak = MeanPeak(nominal, request);
  }
  return requests;
}

}  // namespace rehearse
