// What boards may draw, according to data sheets, and how much longer products and attention take
// in the steps of a training because of it.
//
// Measured alone, in short runs, products are quicker than in a training that goes on for hours:
// there the board holds its power limit by lowering its clock. With the joules that an operation
// takes at the clock of short runs,
//   watts   = energy · rate,    rate = flops / time alone
//   stretch = (watts / (power − resting))^(3/4), at least 1
// since power falls with a little more than the clock (its voltage falls, too, until it is lowest),
// and with roots alone, whose bits are the same everywhere.
// A product of f flops takes 1 + (stretch − 1) · f²/(f² + f0²) times as long, f0 = 0.12 TFLOP:
// small ones spend most of their time on other things than arithmetic. Attention runs at the clock
// that large products in 16 bits leave: the limit is held over many kernels.
// topology/OPERATORS.md says which rows the energies were read off.
#pragma once

#include <optional>
#include <string_view>

#include "topology/devices/device.h"

namespace rehearse {

// Watts of one device (of a die, where a board has two and each is a device); nothing if no data
// sheet says it, or if it gives a range.
std::optional<double> BoardPowerOf(std::string_view device);

// Gives the device its board's power and the energies of its generation; nothing where neither is
// known.
void AddPower(DeviceSpec* device);

// How many times as long as alone a product, and attention, take in a training; 1 if nothing limits
// the device.
double StretchOfProduct(const DeviceSpec& device, DType dtype, Flops flops, Seconds alone);
double StretchOfAttention(const DeviceSpec& device);

}  // namespace rehearse
