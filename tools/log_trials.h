// The tables of a log of nccl-tests as trials on a cluster: which ranks did what, as the log and
// the command line say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/program_options.hpp>

#include "collectives/lowering/trial.h"
#include "real/calibration/nccl_table.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

struct LogTrial {
  NcclTable table;
  Trial trial;
};

// `values` has the options of tools/trial_options.h, and may have "kind". What is left out of the
// log is said on standard error. Throws Error (file, line) for a table whose collective is not
// known, and for more ranks than the cluster has.
std::vector<LogTrial> ReadLogTrials(std::string_view text, const std::string& path,
                                    const boost::program_options::variables_map& values,
                                    const Cluster& cluster);

}  // namespace rehearse
