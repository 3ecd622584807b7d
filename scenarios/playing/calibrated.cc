#include "scenarios/playing/calibrated.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "real/backends/host.h"
#include "real/backends/rank_plan.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_check.h"
#include "topology/files/calibration.h"

namespace rehearse {
namespace {

uint32_t MostRanksOfANode(const Cluster& cluster) {
  std::vector<uint32_t> ranks(cluster.node_count(), 0);
  for (uint32_t rank = 0; rank < cluster.device_count(); ++rank) ++ranks[cluster.NodeIndexOf(rank)];
  return *std::max_element(ranks.begin(), ranks.end());
}

// What the calibration knows about one op; nothing if it knows nothing, so that the device's model
// is used.
std::optional<MeasuredTime> MeasuredTimeOf(const Op& op, const Schedule& schedule,
                                           const Cluster& cluster) {
  if (const auto* compute = std::get_if<Compute>(&op.work)) {
    const auto& kernels = cluster.DeviceOf(0).measured;
    if (!kernels) return std::nullopt;
    Compute timed = *compute;
    timed.gemm.mode = compute->tuned.value_or(compute->gemm.mode);
    return TimeOf(*kernels, timed);
  }
  const auto& costs = cluster.measured_collectives();
  if (!costs) return std::nullopt;
  const auto* collective = std::get_if<Collective>(&op.work);
  if (collective == nullptr) return MessageTimeOf(*costs, CommunicationBytes(op.work));
  const uint32_t ranks = schedule.communicators[collective->communicator.index()].size();
  return TimeOf(*costs, *collective, ranks);
}

// Whether a calibration could cover the op.
bool IsConcerned(const Op& op, const Schedule& schedule, const Cluster& cluster) {
  const CommunicatorId id = CommunicatorOf(op.work);
  if (!id.IsSet()) return cluster.DeviceOf(0).measured != nullptr;
  return cluster.measured_collectives() && schedule.communicators[id.index()].size() > 1;
}

std::string NoteOn(const char* what, size_t ops, size_t of, const std::string& example) {
  return fmt::format("calibration: {} of {} ops {}, for example {}", ops, of, what, example);
}

}  // namespace

Schedule AsExecuted(Schedule schedule, const Cluster& cluster) {
  const double cores = cluster.DeviceOf(0).host_cores;
  if (!cluster.measured_collectives() || cores == 0) return schedule;
  if (cores >= MostRanksOfANode(cluster) * StreamsInUse(schedule)) return schedule;
  std::optional<Schedule> blocking = BlockingForm(schedule);
  return blocking ? std::move(*blocking) : schedule;
}

std::vector<std::string> CalibrationNotes(const Schedule& schedule, const Cluster& cluster) {
  std::vector<std::string> notes;
  const auto& origin = cluster.calibration_origin();
  if (!origin) return notes;
  if (!origin->is_representative) {
    notes.emplace_back(
        "calibration: not representative, so that times may be far off; its file says why "
        "(about.not_representative)");
  }
  const HostMachine host = ThisHost();
  const std::string here = MachineName(host.processor, host.cores);
  if (cluster.name() == "local-cpu" && !origin->machine.empty() && origin->machine != here) {
    notes.push_back(
        fmt::format("calibration: measured on {}, but this machine is {}", origin->machine, here));
  }

  size_t concerned = 0;
  size_t outside = 0;
  size_t unknown = 0;
  Seconds longest_outside;
  std::string outside_example;
  std::string unknown_example;
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      if (!IsConcerned(op, schedule, cluster)) continue;
      ++concerned;
      const auto measured = MeasuredTimeOf(op, schedule, cluster);
      const auto describe = [&] {
        return fmt::format("\"{}\" ({})", op.name, Describe(schedule, op.work));
      };
      if (!measured) {
        ++unknown;
        if (unknown_example.empty()) unknown_example = describe();
      } else if (measured->source == CostSource::kOutside) {
        ++outside;
        if (outside == 1 || measured->time > longest_outside) {
          longest_outside = measured->time;
          outside_example = describe();
        }
      }
    }
  }
  if (outside > 0)
    notes.push_back(NoteOn("are outside the measured range", outside, concerned, outside_example));
  if (unknown > 0)
    notes.push_back(
        NoteOn("are of kinds that were not measured", unknown, concerned, unknown_example));
  return notes;
}

Alike AlikeUnder(const Cluster& cluster) {
  return {.layers = !cluster.measured_collectives() && !cluster.calibration_origin()};
}

}  // namespace rehearse
