// Published measurements of collectives, as figures: bytes and microseconds (out of place), and
// what was fitted on them. They are in measured_tables.txt, whose head describes the format.
//
// Each table names its source. From VIA-Research/vTrain's look-up tables (1 to 1,024 MiB in steps
// of 1 MiB) the powers of two and three times the powers of two are taken. Zero sizes are left out;
// for the H200 of stas00/ml-engineering only bandwidths are published, and times follow from them.
// None of openxla's one-way permutations between pairs is taken.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collectives/nccl/nccl_version.h"
#include "sim/schedule/schedule.h"
#include "topology/cluster/wiring.h"

namespace rehearse {

struct MeasuredPoint {
  double bytes = 0;
  double microseconds = 0;
};

struct MeasuredTable {
  std::string machine;  // tables of one machine share their two fitted numbers
  std::string cluster;  // the preset that stands for it
  std::string ranks;
  uint32_t groups = 1;  // of neighbours, at the same time
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string source;
  NcclVersion nccl = kStandardNccl;  // whose choice is nearest to that of the release that ran
  std::vector<MeasuredPoint> points;
};

// What the fit found for a machine.
struct FittedNumbers {
  bool has_efficiency = false;
  LinkKind kind = LinkKind::kNvLink;
  double gigabytes_per_second = 0;  // of the links that bind
  double efficiency = 1;
  bool has_launching = false;
  double launching_us = 0;
  bool by_channel = false;  // whether channels add to launching
};

const std::vector<MeasuredTable>& MeasuredTables();
// By machine.
const std::map<std::string, FittedNumbers>& NumbersFitted();

}  // namespace rehearse
