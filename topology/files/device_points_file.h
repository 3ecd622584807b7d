// Measured times of a device's operators, as a CSV file: --device-points FILE.csv, or
// "device_points": "FILE.csv" in a cluster's file or a scenario.
//
//   op,m,n,k,heads,head_dim,sequence,dtype,microseconds
//   gemm,4096,8192,8192,,,,bf16,812.4
//   attention,,,,32,128,4096,bf16,433.0
//   attention-backward,,,,32,128,4096,bf16,1120.5
//
// Columns come in any order. Optional ones: `mode` (NN, NT or TN, of a product; else it stands for
// all three), `batch` (products, or sequences; 1), `causal` (0 or 1, of attention; 1), `count` (for
// people: how often a step has it; rehearse plan --products writes it). What a row's op does not
// have stays empty. A time is that of the whole op. Rows stand for exactly these sizes
// (topology/devices/device_points.h), on every device of the cluster.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/csv_file.h"
#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "topology/cluster/cluster.h"
#include "topology/devices/device_points.h"

namespace rehearse {

struct DevicePointsFile {
  DevicePoints points;
  std::map<PointKey, Place> places;  // where each was given
};

// Throws Error (file, line) for columns and ops that are not known, sizes and times that are not
// numbers or not above zero, and sizes that already have a time.
DevicePointsFile ReadDevicePoints(const CsvFile& file);
DevicePointsFile ReadDevicePoints(const JsonReader& path);  // relative to the file that names it

// The cluster whose devices have these points. Throws Error at the first time that some device
// cannot have taken: less than half of what its peak allows, or 300 times what its model says, as
// when times are in another unit.
std::unique_ptr<Cluster> ApplyDevicePoints(const Cluster& cluster, const DevicePointsFile& file);

// The columns of such a file as they are written, and a row of it.
std::string PointColumns();
std::string PointRow(const PointKey& key, Seconds time);
// What `rehearse schema device-points` prints.
std::string DescribePointColumns();

// The points as such a file.
std::string ToCsv(const DevicePoints& points);

}  // namespace rehearse
