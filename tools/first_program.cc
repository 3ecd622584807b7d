// What makes the program that a first build ends with (rehearse_first in CMakeLists.txt): `run`,
// and nothing that `run` rarely needs. Where it needs more, tools/rehearse builds the whole program
// and starts that instead (NeedsWholeProgram).
#include "scenarios/playing/calibrated.h"
#include "scenarios/queueing/queue.h"
#include "scenarios/queueing/queue_result.h"
#include "tools/command.h"
#include "tools/foreign/traces/kineto/kineto_write.h"

namespace rehearse {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"run", "simulate one scenario and show where the time goes", RunSyntax, RunCommand}};
  return commands;
}

// Real runs, which decide how this machine plays what was measured on it.
Schedule AsExecuted(Schedule schedule, const Cluster& cluster) {
  if (cluster.measured_collectives()) throw NeedsWholeProgram();
  return schedule;
}

std::vector<std::string> CalibrationNotes(const Schedule&, const Cluster& cluster) {
  if (cluster.calibration_origin()) throw NeedsWholeProgram();
  return {};
}

Alike AlikeUnder(const Cluster& cluster) {
  if (cluster.measured_collectives() || cluster.calibration_origin()) throw NeedsWholeProgram();
  return {.layers = true};
}

// Jobs as they come.
Queue PlayQueue(const Scenario&, ProgressObserver&) { throw NeedsWholeProgram(); }
nlohmann::ordered_json ToJson(const Queue&, const Scenario&) { throw NeedsWholeProgram(); }
std::string ToText(const Queue&, const Scenario&, bool) { throw NeedsWholeProgram(); }
std::string QueueSvg(const Queue&, const std::string&) { throw NeedsWholeProgram(); }

std::string KinetoFileName(uint32_t) { throw NeedsWholeProgram(); }
std::string KinetoTraceOf(const Schedule&, const Timeline&, const TraceNames&, uint32_t) {
  throw NeedsWholeProgram();
}

}  // namespace rehearse
