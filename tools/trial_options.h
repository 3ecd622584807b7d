// What commands that time one collective have in common: options that say which collective, where
// and how.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "collectives/lowering/trial.h"
#include "sim/base/error.h"
#include "sim/base/read_options.h"
#include "tools/command.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// Adds --cluster, --ranks, --groups, --root, --algorithm, --protocol, --nccl, --channels,
// --fidelity, and those of tools/routing_options.h.
void AddTrialOptions(CommandSyntax* syntax);

// The kinds that an argument for a collective takes.
Taken TakenCollective();

// Finds a collective by its name, in our spelling, NCCL's or that of nccl-tests' programs;
// otherwise Error with "did you mean". `besides` are other names that the caller takes, for the
// message.
CollectiveKind ParseCollectiveKind(const std::string& option, const std::string& text,
                                   const std::vector<std::string>& besides = {});

// Reads the cluster that --cluster names, with the calibration in this file if there is one. Throws
// Error without --cluster.
std::unique_ptr<Cluster> ReadTrialCluster(const boost::program_options::variables_map& values,
                                          const std::optional<std::string>& calibration,
                                          const std::string& usage,
                                          const ReadOptions& options = {});

// `members` is how many ranks take part if --ranks does not say, as the file says at `place`; all
// if it is nothing. Throws Error for ranks, groups, roots, algorithms and protocols that do not
// fit.
Trial ReadTrial(const boost::program_options::variables_map& values, CollectiveKind kind,
                const Cluster& cluster, std::optional<uint32_t> members, const Place& place = {});

// Throws Error if the trial's first group cannot run its algorithm, whoever chose it.
void CheckAlgorithmOf(const Trial& trial, const Cluster& cluster);

}  // namespace rehearse
