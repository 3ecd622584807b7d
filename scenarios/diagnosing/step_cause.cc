#include "scenarios/diagnosing/step_cause.h"

#include <fmt/format.h>

#include "scenarios/diagnosing/step_cause_rows.h"

namespace rehearse {

const std::vector<StepCause>& StepCauses() {
  static const std::vector<StepCause> causes = {SlowDevicesRow(),
                                                StragglerRow(),
                                                SlowMemoryRow(),
                                                SlowStepNetworkRow(),
                                                StepNetworkLatencyRow(),
                                                StepNicDownRow(),
                                                StepHashCollisionsRow(),
                                                StepAlgorithmPinnedRow(),
                                                StepFewChannelsRow(),
                                                SlowStepNvLinkRow(),
                                                RecomputationRow(),
                                                UnfusedAttentionRow(),
                                                EagerKernelsRow(),
                                                HostLaunchRow(),
                                                PrecisionRow(),
                                                UnfusedOptimizerRow(),
                                                GathersNotAheadRow(),
                                                GradientsNotBesideRow(),
                                                TensorNotBesideRow(),
                                                SmallMicroBatchesRow(),
                                                PipelineBubbleRow(),
                                                ExpertImbalanceRow(),
                                                JitterRow(),
                                                StallRow()};
  return causes;
}

std::string WithEdit(const StepSubject& subject, const nlohmann::json& edit) {
  nlohmann::json edits = subject.scenario.value("edits", nlohmann::json::array());
  edits.push_back(edit);
  return "edits=" + edits.dump();
}

std::string FactorText(double factor) { return fmt::format("{:.6f}x", factor); }

bool HasValue(const StepSubject& subject, const char* pointer, const char* value) {
  return subject.scenario.value(nlohmann::json::json_pointer(pointer), std::string()) == value;
}

}  // namespace rehearse
