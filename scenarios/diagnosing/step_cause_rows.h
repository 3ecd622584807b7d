// The rows of the table of causes of slow steps, in step_cause_*.cc, gathered in step_cause.cc; and
// what they share.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "scenarios/diagnosing/cause_rows.h"
#include "scenarios/diagnosing/step_cause.h"

namespace rehearse {

StepCause SlowDevicesRow();
StepCause StragglerRow();
StepCause SlowMemoryRow();
StepCause SlowStepNetworkRow();
StepCause StepNetworkLatencyRow();
StepCause SlowStepNvLinkRow();
StepCause RecomputationRow();
StepCause UnfusedAttentionRow();
StepCause EagerKernelsRow();
StepCause HostLaunchRow();
StepCause PrecisionRow();
StepCause UnfusedOptimizerRow();
StepCause GathersNotAheadRow();
StepCause GradientsNotBesideRow();
StepCause TensorNotBesideRow();
StepCause SmallMicroBatchesRow();
StepCause PipelineBubbleRow();
StepCause ExpertImbalanceRow();
StepCause StallRow();
StepCause StepNicDownRow();
StepCause StepHashCollisionsRow();
StepCause StepAlgorithmPinnedRow();
StepCause StepFewChannelsRow();
StepCause JitterRow();

// ---- What rows share ----------------------------------------------------------------------------

// The scenario's edits (topology/files/edits.h) and one more, as a change of them.
std::string WithEdit(const StepSubject& subject, const nlohmann::json& edit);
std::string FactorText(double factor);  // "0.85x"
// Whether the scenario has this text at the JSON pointer.
bool HasValue(const StepSubject& subject, const char* pointer, const char* value);

}  // namespace rehearse
