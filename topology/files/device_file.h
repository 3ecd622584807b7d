// The tables of a device that a cluster file describes.
#pragma once

#include "sim/base/json_shape.h"

namespace rehearse {

JsonShape DeviceChoiceShape();  // a known device's name, or an object
const ObjectShape& DeviceShape();
const ObjectShape& GemmPointShape();
const ObjectShape& GemmModelShape();
const ObjectShape& AttentionModelShape();
const ObjectShape& AttentionRatesShape();
const ObjectShape& AttentionPassShape();
const ObjectShape& SlowdownShape();
const ObjectShape& WavesShape();

}  // namespace rehearse
