// What the "run" of a scenario says: the weeks of training that its step is repeated for, and what
// fails in them (scenarios/campaign/campaign.h says what is done with it).
//
// Rates are those of one part in use, whatever its age. Where nothing is said they are those of a
// published training:
//
//   llama-3   419 unexpected interruptions of 16,384 H100 in 54 days, by cause (Llama 3,
//             arXiv 2407.21783, Table 5), and 47 planned ones of the whole run. A GPU's own: faulty
//             GPU 148, SRAM 19, system processor 17, silent data corruption 6, thermal interface
//             and sensor 6; HBM3 72; NIC 7; switch or cable 35; a host's: maintenance 32, SSD 3,
//             power supply 3, chassis 2, IO expansion board 2, CPU 2, memory 2; software: bug 54,
//             NCCL watchdog 7, dependency 2. The 35 are halved between cables and switches, as no
//             source splits them; there were two cables a GPU (NIC to rack, rack to cluster switch)
//             and, a guess, 1,280 switches (1,024 racks of 16 GPUs, 256 of 64 ports above them).
//   rsc-1     the same, scaled to the 6.50 failures in a thousand days of a host of 8 A100 that
//   rsc-2     Meta's RSC-1 had, and to the 2.34 of RSC-2 (arXiv 2410.21680); Llama 3 had 3.79.
#pragma once

#include <cstdint>
#include <optional>

#include "scenarios/readers/long_times.h"
#include "sim/base/error.h"
#include "sim/base/json_fields.h"
#include "sim/base/quantity.h"

namespace rehearse {

enum class PublishedFailures : uint8_t { kLlama3, kRsc1, kRsc2, kNone };

struct FailureOptions {
  PublishedFailures like = PublishedFailures::kLlama3;
  // Of one part each, instead of those.
  std::optional<FailureRate> gpu = {};
  std::optional<FailureRate> hbm = {};  // of one GPU
  std::optional<FailureRate> nic = {};
  std::optional<FailureRate> cable = {};  // of the network
  std::optional<FailureRate> switches = {};
  std::optional<FailureRate> host = {};      // all else in it
  std::optional<FailureRate> software = {};  // of the processes of one host
  std::optional<FailureRate> planned = {};   // of the whole run

  // What holds where nothing is given.
  static FailureOptions Published(PublishedFailures like);
};

enum class CheckpointTarget : uint8_t { kStorage, kNeighbour };

struct CheckpointOptions {
  std::optional<Seconds> interval = {};  // of training between two; none: the best one
  CheckpointTarget to = CheckpointTarget::kStorage;
  std::optional<BytesPerSecond> storage_bandwidth = {};  // of all writers together
  std::optional<Bytes> storage_capacity = {};
  uint32_t kept = 2;         // checkpoints on the storage at a time
  bool asynchronous = true;  // training waits for the copy to the host only
  bool sharded = true;       // every host writes as much; else one writes all
  std::optional<BytesPerSecond> copy_bandwidth = {};  // of a device to its host
};

struct StragglerOptions {
  FailureRate rate = {};  // of one GPU
  double slowdown = 0;    // of the whole step: 0.1 is a tenth longer
  Seconds found_after;
};

enum class StepOfRun : uint8_t { kSimulated, kTypical };

struct RunOptions {
  double tokens = 0;
  StepOfRun step = StepOfRun::kSimulated;
  FailureOptions failures = {};
  CheckpointOptions checkpoint = {};
  // MegaScale (arXiv 2402.15627, section 6.3) finds and diagnoses a fault in less than 10 minutes
  // in the mean.
  Seconds detection = Seconds(600);
  // Before the checkpoint is read: the job is placed, its program starts, communicators are made. A
  // guess: MegaScale's are there in 30 s, but without its changes in more than 17 minutes.
  Seconds restart = Seconds(300);
  Seconds repair = Seconds(86400);      // of a machine, until it is a spare: a guess
  std::optional<uint32_t> spares = {};  // machines; none: always one left
  bool elastic = false;                 // goes on with fewer replicas where none is left
  std::optional<StragglerOptions> stragglers = {};
  uint32_t seeds = 100;
  uint64_t seed = 1;

  Place place = {};  // of the object; no key
};

const Fields<RunOptions>& RunFields();

}  // namespace rehearse
