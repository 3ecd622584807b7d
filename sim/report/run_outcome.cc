#include "sim/report/run_outcome.h"

#include <limits>

#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

constexpr double kMostOfRuns = std::numeric_limits<double>::max();

template <typename T>
Field<T> RunNumber(const char* name, double T::*member, const char* about) {
  return {name, member, ANumber(0, kMostOfRuns), Required(), about, "0.92"};
}

void ReadRunTime(const JsonReader& reader, Seconds* time) { *time = Seconds(reader.Number()); }
void WriteRunTime(const Seconds& time, nlohmann::ordered_json* to) { *to = time.value(); }
template <typename T>
Field<T> RunTimeRow(const char* name, Seconds T::*member, const char* about) {
  return {name,       member, ReadBy(ANumber(0, kMostOfRuns, "s"), ReadRunTime, WriteRunTime),
          Required(), about,  "11000"};
}

void ReadRunBytes(const JsonReader& reader, Bytes* bytes) { *bytes = Bytes(reader.Number()); }
void WriteRunBytes(const Bytes& bytes, nlohmann::ordered_json* to) { *to = bytes.value(); }

const Fields<RunSpread>& SpreadFields() {
  static const Fields<RunSpread> fields(
      "spread", "A number of simulated runs, over their seeds.",
      {RunNumber("median", &RunSpread::median, "half of the runs are below"),
       RunNumber("low", &RunSpread::low, "10 % of the runs are below"),
       RunNumber("high", &RunSpread::high, "10 % of the runs are above")});
  return fields;
}

const Fields<RunShares>& SharesFields() {
  static const Fields<RunShares> fields(
      "shares of a run", "What the time of all runs goes into; the shares add up to 1.",
      {RunNumber("useful", &RunShares::useful, "training that was kept"),
       RunNumber("checkpoints", &RunShares::checkpoints, "training stood still for them"),
       RunNumber("lost", &RunShares::lost, "training that had to be done again"),
       RunNumber("slow", &RunShares::slow, "longer steps: stragglers, fewer replicas"),
       RunNumber("detection", &RunShares::detection, "until a failure was understood"),
       RunNumber("restart", &RunShares::restart, "until training went on"),
       RunNumber("waiting", &RunShares::waiting, "for a machine to be repaired")});
  return fields;
}

const Fields<RunPart>& PartFields() {
  static const Fields<RunPart> fields(
      "failing part", "A kind of part, and what its failures do.",
      {{"part", &RunPart::name, AText(), Required(), "which it is", "\"GPU\""},
       RunNumber("count", &RunPart::count, "how many the run depends on"),
       RunTimeRow("seconds_between", &RunPart::between,
                  "mean time between failures of any of them"),
       RunNumber("interruptions", &RunPart::interruptions, "of a run, as a mean over seeds")});
  return fields;
}

const Fields<RunCheckpoint>& CostFields() {
  static const Fields<RunCheckpoint> fields(
      "cost of a checkpoint", "How much it is, and how long it takes.",
      {{"bytes", &RunCheckpoint::bytes,
        ReadBy(ANumber(0, kMostOfRuns, "B"), ReadRunBytes, WriteRunBytes), Required(),
        "weights and optimizer state", "5.6e12"},
       RunTimeRow("copy_seconds", &RunCheckpoint::copy, "from devices to hosts"),
       RunTimeRow("write_seconds", &RunCheckpoint::write, "from hosts to where it is kept"),
       RunTimeRow("stall_seconds", &RunCheckpoint::stall, "training stands still"),
       RunTimeRow("reload_seconds", &RunCheckpoint::reload, "to read it after a restart")});
  return fields;
}

const Fields<RunInterval>& IntervalFields() {
  static const Fields<RunInterval> fields(
      "interval between checkpoints", "Training between two checkpoints, and what it leads to.",
      {RunTimeRow("seconds", &RunInterval::length, "of training"),
       RunNumber("effective", &RunInterval::effective,
                 "share of the time that is training, over all seeds")});
  return fields;
}

Field<RunOutcome> IntervalRow(const char* name, RunInterval RunOutcome::*member,
                              const char* about) {
  return {name, member, ObjectIn<IntervalFields>(), Required(), about};
}
Field<RunOutcome> SpreadRow(const char* name, RunSpread RunOutcome::*member, const char* about) {
  return {name, member, ObjectIn<SpreadFields>(), Required(), about};
}

}  // namespace

const Fields<RunOutcome>& RunOutcomeFields() {
  using Run = RunOutcome;
  constexpr int64_t kMostSteps = int64_t{1} << 62;
  constexpr int64_t kMostCount = std::numeric_limits<uint32_t>::max();
  static const Fields<Run> fields(
      "outcome of a run", "What weeks of training come to, with failures and checkpoints.",
      {RunNumber("tokens", &Run::tokens, "that are trained on"),
       {"token_name", &Run::token_name, AText(), Required(), "what is counted", "\"tokens\""},
       {"steps", &Run::steps, AWhole(0, kMostSteps), Required(), "steps of the run", "900000"},
       RunTimeRow("step_seconds", &Run::step, "how long each is taken to be"),
       {"machines", &Run::machines, AWhole(0, kMostCount), Required(), "that it runs on", "2048"},
       {"seeds", &Run::seeds, AWhole(0, kMostCount), Required(), "runs that were simulated", "100"},
       SpreadRow("seconds", &Run::seconds, "how long the run takes, in seconds"),
       SpreadRow("effective", &Run::effective,
                 "effective training time: the share of the time that is training"),
       SpreadRow("interruptions", &Run::interruptions, "how often it is interrupted"),
       SpreadRow("machines_in_repair", &Run::in_repair, "at once, at most: spares that it takes"),
       RunNumber("stragglers", &Run::stragglers, "GPUs that became slow, as a mean over seeds"),
       {"shares", &Run::shares, ObjectIn<SharesFields>(), Required(), "what the time goes into"},
       RunTimeRow("seconds_between", &Run::between, "mean time between two failures of any part"),
       {"parts", &Run::parts, ListOf(ObjectIn<PartFields>()), Required(), "what fails"},
       {"checkpoint", &Run::checkpoint, ObjectIn<CostFields>(), Required(), "what one takes"},
       IntervalRow("interval", &Run::used, "between the run's checkpoints"),
       IntervalRow("best_interval", &Run::best, "the best one, found by simulation"),
       IntervalRow("young_interval", &Run::young, "by Young's formula"),
       IntervalRow("daly_interval", &Run::daly, "by Daly's formula"),
       {"by_interval", &Run::by_interval, ListOf(ObjectIn<IntervalFields>()), Required(),
        "those that were simulated"}});
  return fields;
}

nlohmann::ordered_json ToJson(const RunOutcome& outcome) {
  nlohmann::ordered_json json;
  RunOutcomeFields().Write(outcome, &json);
  return json;
}

}  // namespace rehearse
