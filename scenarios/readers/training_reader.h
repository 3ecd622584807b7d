// Reads a scenario's "training": how long the step is, and how it is computed.
#pragma once

#include <cstdint>

#include "sim/base/json_fields.h"
#include "sim/base/json_reader.h"
#include "workloads/networks/training.h"

namespace rehearse {

// Kinds of networks, which differ in the keys that their trainings have.
enum class TrainingOf : uint8_t { kDecoders, kSamples, kImages };
const char* VariantOf(TrainingOf networks);  // of the table's rows

const Fields<Training>& TrainingFields();
const ObjectShape& TrainingShape();

Training ReadTraining(const JsonReader& object, TrainingOf networks);

}  // namespace rehearse
