#include "topology/devices/board_power.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "topology/devices/gemm_model.h"

namespace rehearse {
namespace {

struct BoardPower {
  std::string_view device;
  double watts;
};

// "Max thermal design power", "total board power" or "peak power" of each data sheet.
constexpr std::array kBoards = {
    BoardPower{"a100-40g", 400},    // NVIDIA A100 data sheet, SXM
    BoardPower{"a100-80g", 400},    // NVIDIA A100 data sheet, SXM
    BoardPower{"a800", 400},        // as the A100, whose die it is
    BoardPower{"b200", 1000},       // NVIDIA Blackwell data sheet, HGX B200, "up to"
    BoardPower{"b300", 1100},       // Lenovo Press, ThinkSystem SR680a V4: HGX B300 of 1,100 W
    BoardPower{"gb200", 1200},      // NVIDIA Blackwell data sheet, GB200 NVL72, "up to"
    BoardPower{"gb300", 1400},      // NVIDIA Blackwell Ultra data sheet, GB300 NVL72, "up to"
    BoardPower{"h100", 700},        // NVIDIA H100 data sheet, SXM, "up to"
    BoardPower{"h200", 700},        // NVIDIA H200 data sheet, SXM, "up to"
    BoardPower{"h800", 700},        // as the H100, whose die it is
    BoardPower{"l40s", 350},        // NVIDIA L40S data sheet
    BoardPower{"mi250x-gcd", 280},  // AMD Instinct MI250X data sheet, peak 560 W, half of it
    BoardPower{"mi300x", 750},      // AMD Instinct MI300X data sheet
    BoardPower{"mi325x", 1000},     // AMD Instinct MI325X data sheet
    BoardPower{"mi355x", 1400},     // AMD Instinct MI355X data sheet
    BoardPower{"p100-16g", 250},    // NVIDIA Tesla P100 PCIe data sheet
    BoardPower{"rtx4090", 450},     // NVIDIA Ada GPU architecture white paper
    BoardPower{"v100-16g", 300},    // NVIDIA V100 data sheet, SXM2
    BoardPower{"v100-32g", 300},    // NVIDIA V100 data sheet, SXM2
};

// What an operation of products takes in picojoules, at the clock of short runs.
struct GenerationPower {
  uint32_t capability = 0;
  double energy_16 = 0;
  double energy_8 = 0;
  double energy_4 = 0;
};
constexpr std::array kGenerations = {
    GenerationPower{80, 1.0, 0, 0},
    GenerationPower{90, 0.826, 0.386, 0},
    GenerationPower{100, 0.583, 0.284, 0.176},
    GenerationPower{103, 0.583, 0.284, 0.176},
};

// Memory, links and leakage take so much of the limit whatever is multiplied.
constexpr double kRestingShare = 0.2;

// At this size half of the stretch is there.
constexpr Flops kHalfSize(0.12e12);

double EnergyOf(const DeviceSpec& device, DType dtype) {
  switch (dtype) {
    case DType::kFp4:
      return device.energy_4;
    case DType::kFp8:
      return device.energy_8;
    case DType::kBf16:
    case DType::kFp16:
      return device.energy_16;
    default:
      return 0;
  }
}

// How many times as long something takes that would need so many watts besides what rests.
double StretchOf(const DeviceSpec& device, double watts) {
  const double left = device.power - device.resting_power;
  if (!(left > 0) || !(watts > left)) return 1;
  const double root = std::sqrt(watts / left);
  return root * std::sqrt(root);
}

constexpr double kPico = 1e-12;

}  // namespace

std::optional<double> BoardPowerOf(std::string_view device) {
  for (const BoardPower& board : kBoards)
    if (board.device == device) return board.watts;
  return std::nullopt;
}

void AddPower(DeviceSpec* device) {
  const std::optional<double> watts = BoardPowerOf(device->name);
  const auto* const generation = std::find_if(
      kGenerations.begin(), kGenerations.end(),
      [&](const GenerationPower& one) { return one.capability == device->compute_capability; });
  if (!watts || generation == kGenerations.end()) return;
  device->power = *watts;
  device->resting_power = kRestingShare * *watts;
  device->energy_16 = generation->energy_16;
  device->energy_8 = generation->energy_8;
  device->energy_4 = generation->energy_4;
  device->sources.emplace_back("power", "its data sheet");
  for (const char* figure : {"resting_power", "energy_16", "energy_8", "energy_4"})
    device->sources.emplace_back(figure, "read off published steps: topology/OPERATORS.md");
}

double StretchOfProduct(const DeviceSpec& device, DType dtype, Flops flops, Seconds alone) {
  if (!(alone > Seconds(0))) return 1;
  const double rate = flops.value() / alone.value();
  const double size = flops / kHalfSize;
  return 1 + (StretchOf(device, EnergyOf(device, dtype) * kPico * rate) - 1) * size * size /
                 (size * size + 1);
}

double StretchOfAttention(const DeviceSpec& device) {
  if (!device.gemm_model) return 1;
  const GemmModel& model = *device.gemm_model;
  const double rate = device.matrix_peak_16.value() * model.many_waves * model.sustained;
  return StretchOf(device, device.energy_16 * kPico * rate);
}

}  // namespace rehearse
