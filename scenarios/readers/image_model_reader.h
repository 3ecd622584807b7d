// Reads the "model" of networks of images: presets with changes, or all their numbers.
//
// Errors name the place, for example of an image that pooling does not halve evenly, or of channels
// that groups or heads do not divide.
#pragma once

#include "sim/base/json_fields.h"
#include "sim/base/json_reader.h"
#include "workloads/networks/unet_network.h"
#include "workloads/networks/vgg_network.h"

namespace rehearse {

// "stages" (channels of each convolution), "classes"; optional "image", "image_channels", "hidden".
const Fields<VggModel>& VggFields();
const Fields<UnetModel>& UnetFields();

VggModel ReadVgg(const JsonReader& object);

// "channels"; optional "multipliers", "blocks", "image", "image_channels", "attention" (sides of
// images), "head_size", "groups".
UnetModel ReadUnet(const JsonReader& object);

}  // namespace rehearse
