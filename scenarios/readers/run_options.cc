#include "scenarios/readers/run_options.h"

namespace rehearse {
namespace {

constexpr ValueName<PublishedFailures> kPublishedNames[] = {{"llama-3", PublishedFailures::kLlama3},
                                                            {"rsc-1", PublishedFailures::kRsc1},
                                                            {"rsc-2", PublishedFailures::kRsc2},
                                                            {"none", PublishedFailures::kNone}};
constexpr ValueName<CheckpointTarget> kTargetNames[] = {
    {"storage", CheckpointTarget::kStorage}, {"neighbour", CheckpointTarget::kNeighbour}};
constexpr ValueName<StepOfRun> kStepNames[] = {{"simulated", StepOfRun::kSimulated},
                                               {"typical", StepOfRun::kTypical}};

constexpr double kDay = 86400;
constexpr double kMostSlowdown = 100;
constexpr int64_t kMostMachines = 1 << 20;
constexpr int64_t kMostSeeds = 10'000;

Field<FailureOptions> RateRow(const char* name, std::optional<FailureRate> FailureOptions::*member,
                              const char* about, const char* example) {
  return {name, member, AFailureRate(), Optional("as \"like\""), about, example};
}

const Fields<FailureOptions>& FailureFields() {
  using Failures = FailureOptions;
  static const Fields<Failures> fields(
      "failures", "How often each part fails, as a rate or as the mean time between two failures.",
      {{"like", &Failures::like, OneOf(kPublishedNames), Usual(),
        "whose rates hold for parts that have none: published trainings "
        "(scenarios/readers/run_options.h)"},
       RateRow("gpu", &Failures::gpu, "of one GPU, without its memory", "\"9.2e-6/h\""),
       RateRow("hbm", &Failures::hbm, "of the memory of one GPU", "\"34 years\""),
       RateRow("nic", &Failures::nic, "of one NIC", "\"3.3e-7/h\""),
       RateRow("cable", &Failures::cable, "of one cable of the network", "\"4.1e-7/h\""),
       RateRow("switch", &Failures::switches, "of one switch of the network", "\"1.1e-5/h\""),
       RateRow("host", &Failures::host, "of all else in one machine", "\"1.7e-5/h\""),
       RateRow("software", &Failures::software, "of the processes of one machine", "\"2.4e-5/h\""),
       RateRow("planned", &Failures::planned,
               "of the whole run: it is stopped after a checkpoint, and nothing is lost",
               "\"27.6h\"")});
  return fields;
}

void CheckCheckpoint(const JsonReader& reader, CheckpointOptions* checkpoint) {
  const bool to_storage = checkpoint->to == CheckpointTarget::kStorage;
  if (to_storage && !checkpoint->storage_bandwidth)
    reader.Fail("is written to a storage; expected \"storage_bandwidth\"");
  if (!to_storage && checkpoint->storage_bandwidth)
    reader.At("storage_bandwidth").Fail("is of a storage, but \"to\" is a neighbour");
  if (!to_storage && checkpoint->storage_capacity)
    reader.At("storage_capacity").Fail("is of a storage, but \"to\" is a neighbour");
  if (!to_storage && !checkpoint->sharded)
    reader.At("sharded").Expected("true, as \"to\" is a neighbour, whose memory has one share");
  if (checkpoint->interval && !(*checkpoint->interval > Seconds(0)))
    reader.At("interval").Expected("a time above zero");
}

const Fields<CheckpointOptions>& CheckpointFields() {
  using Checkpoint = CheckpointOptions;
  static const Fields<Checkpoint> fields(
      "checkpoint", "When weights and optimizer state are written, and how.",
      {{"interval", &Checkpoint::interval, ALongTime(), Optional("the best, by simulation"),
        "training between two checkpoints, in whole steps", "\"30min\""},
       {"to", &Checkpoint::to, OneOf(kTargetNames), Usual(),
        "a storage behind the network, or the memory of another machine"},
       {"storage_bandwidth", &Checkpoint::storage_bandwidth, ABandwidth(),
        Optional("to a neighbour"), "of all writers, and of all readers, together", "\"2TBps\""},
       {"storage_capacity", &Checkpoint::storage_capacity, ASize(), Optional("enough"),
        "what the storage has room for", "\"240TB\""},
       {"kept", &Checkpoint::kept, AWhole(1, 10000), Usual(),
        "how many checkpoints the storage keeps at a time"},
       {"asynchronous", &Checkpoint::asynchronous, TrueFalse(), Usual(),
        "training waits only for the copy from devices to hosts; else until all is written",
        "false"},
       {"sharded", &Checkpoint::sharded, TrueFalse(), Usual(),
        "every machine writes an equal share; else one machine writes everything", "false"},
       {"copy_bandwidth", &Checkpoint::copy_bandwidth, ABandwidth(),
        Optional("of the device's link to its host"), "from a device to its host, and back",
        "\"25GBps\""}},
      CheckCheckpoint);
  return fields;
}

const Fields<StragglerOptions>& StragglerFields() {
  using Stragglers = StragglerOptions;
  static const Fields<Stragglers> fields(
      "silent stragglers",
      "GPUs that become slow without failing, and with them the step, until they are found and "
      "their machine is replaced.",
      {{"rate", &Stragglers::rate, AFailureRate(), Required(), "of one GPU", "\"1e-6/h\""},
       {"slowdown", &Stragglers::slowdown, ANumberAbove(0, kMostSlowdown), Required(),
        "by how much the step is longer then: 0.1 is a tenth", "0.1"},
       {"found_after", &Stragglers::found_after, ALongTime(), Required(),
        "time until it is found; then training stops after a checkpoint", "\"6h\""}});
  return fields;
}

// Of one part in Llama 3's training, and of the whole for what is planned.
FailureOptions OfLlama3(double scale) {
  constexpr double kSeconds = 54 * kDay;
  constexpr double kGpus = 16384;
  constexpr double kHosts = kGpus / 8;
  constexpr double kCables = 2 * kGpus;
  constexpr double kSwitches = 1280;
  const auto of = [&](double failures, double parts) {
    return FailureRate{scale * failures / parts / kSeconds};
  };
  FailureOptions rates;
  rates.gpu = of(148 + 19 + 17 + 6 + 6, kGpus);
  rates.hbm = of(72, kGpus);
  rates.nic = of(7, kGpus);
  rates.cable = of(17.5, kCables);
  rates.switches = of(17.5, kSwitches);
  rates.host = of(32 + 3 + 3 + 2 + 2 + 2 + 2, kHosts);
  rates.software = of(54 + 7 + 2, kHosts);
  rates.planned = FailureRate{47 / kSeconds};
  return rates;
}

// In a thousand days of a host.
constexpr double kFailuresOfLlama3 = 419.0 / 2048 / 54 * 1000;

}  // namespace

FailureOptions FailureOptions::Published(PublishedFailures like) {
  FailureOptions rates;
  switch (like) {
    case PublishedFailures::kLlama3:
      rates = OfLlama3(1);
      break;
    case PublishedFailures::kRsc1:
      rates = OfLlama3(6.50 / kFailuresOfLlama3);
      break;
    case PublishedFailures::kRsc2:
      rates = OfLlama3(2.34 / kFailuresOfLlama3);
      break;
    case PublishedFailures::kNone:
      break;
  }
  rates.like = like;
  return rates;
}

const Fields<RunOptions>& RunFields() {
  using Run = RunOptions;
  static const Fields<Run> fields(
      "run",
      "The weeks of training that the step is repeated for, and what fails in them; `rehearse "
      "run`, "
      "search and report --clusters simulate them by events, other commands ignore it.",
      {{"tokens", &Run::tokens, ACountOf("number of tokens such as 15T"), Required(),
        "how many tokens are trained on, or what else the model counts", "\"15T\""},
       {"step", &Run::step, OneOf(kStepNames), Usual(),
        "the step as simulated, or as it typically is where devices differ"},
       {"failures", &Run::failures, ObjectIn<FailureFields>(), Optional("as in Llama 3's training"),
        "how often each part fails", R"({"gpu": "12 years"})"},
       {"checkpoint", &Run::checkpoint, ObjectIn<CheckpointFields>(), Required(),
        "what is written, when and where to", R"({"storage_bandwidth": "2TBps"})"},
       {"detection", &Run::detection, ALongTime(), Usual(),
        "from a failure until it is known what to restart"},
       {"restart", &Run::restart, ALongTime(), Usual(),
        "from then until the checkpoint is read, which comes on top"},
       {"repair", &Run::repair, ALongTime(), Usual(),
        "until a machine that failed is a spare again"},
       {"spares", &Run::spares, AWhole(0, kMostMachines), Optional("always one left"),
        "machines that wait to replace others; without one left, training waits for a repair", "4"},
       {"elastic", &Run::elastic, TrueFalse(), Usual(),
        "without a spare, training goes on with as many data-parallel replicas as are whole, and "
        "the same batch",
        "true"},
       {"stragglers", &Run::stragglers, ObjectIn<StragglerFields>(), Optional("none"),
        "GPUs that become slow unnoticed",
        R"({"rate": "1e-6/h", "slowdown": 0.1, "found_after": "6h"})"},
       {"seeds", &Run::seeds, AWhole(1, kMostSeeds), Usual(), "how many such runs are simulated"},
       {"seed", &Run::seed, AWhole(0, int64_t{1} << 53), Usual(), "the seed of the first"}});
  return fields;
}

}  // namespace rehearse
