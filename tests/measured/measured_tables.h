// Published measurements of NCCL, as figures: bytes and microseconds (out of place).
//
// Sources as named with each table. Of VIA-Research/vTrain's look-up tables (1 to 1,024 MiB in
// steps of 1 MiB) the powers of two and three times the powers of two are taken. Zero sizes are
// left out; of the H200 only bandwidths are published, and times follow from them.
#pragma once

#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

struct MeasuredPoint {
  double bytes = 0;
  double microseconds = 0;
};

struct MeasuredTable {
  const char* machine;  // tables of one machine share their two fitted numbers
  const char* cluster;  // the preset that stands for it
  const char* ranks;
  CollectiveKind kind;
  const char* source;
  std::vector<MeasuredPoint> points;
};

const std::vector<MeasuredTable>& MeasuredTables();

}  // namespace rehearse
