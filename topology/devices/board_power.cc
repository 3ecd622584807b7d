#include "topology/devices/board_power.h"

#include <array>

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

}  // namespace

std::optional<double> BoardPowerOf(std::string_view device) {
  for (const BoardPower& board : kBoards)
    if (board.device == device) return board.watts;
  return std::nullopt;
}

}  // namespace rehearse
