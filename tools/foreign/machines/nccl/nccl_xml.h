// NCCL's topology XML as it stands: what the file says, checked, nothing filled in.
//
//   <system version>                         1 is NCCL's, 2 RCCL's
//     <cpu host_hash numaid arch vendor familyid modelid>          one per NUMA node
//       <pci busid class vendor device link_speed link_width>      nested: switches, GPUs, NICs
//         <gpu dev sm gcn rank gdr>
//           <nvlink target count tclass/> <xgmi .../> <c2c bw count/> </gpu>
//         <nic> <net name dev speed latency gdr/> </nic>
//       <nic> ... </nic>                                           a NIC that is not on PCI
//
// Refused with file and line: what is not well-formed, a DOCTYPE, anything too large or too deep,
// the same bus id, NUMA node, rank or dev twice, numbers out of range. Unknown elements are left
// out, as NCCL does, with a remark.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/foreign/machines/import_rates.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

struct NcclLink {
  int line = 0;
  bool is_xgmi = false;
  uint64_t target = 0;       // bus id
  std::string target_text;   // as written
  std::string target_class;  // "" when the file does not say
  uint32_t count = 0;
  double megabytes = 0;  // per second, each way; from a file that gives this instead of a count
};

struct NcclGpu {
  int line = 0;
  std::optional<uint32_t> dev;
  std::optional<uint32_t> rank;
  uint32_t sm = 0;  // 0 when the file does not say
  std::string gcn;
  std::string model;            // "NVIDIA A100-SXM4-80GB"; "" when the file does not say
  bool is_without_gdr = false;  // gdr="0"
  uint32_t parts = 1;           // it is one of so many partitions of a GPU
  std::vector<NcclLink> links;
  double c2c_megabytes_per_second = 0;  // of all NVLink-C2C together
};

struct NcclNet {
  int line = 0;
  std::string name;
  std::optional<uint32_t> dev;
  double megabits = 0;  // 0 when the file does not say
  Seconds latency;
  bool is_without_gdr = false;
};

struct NcclPci {
  int line = 0;
  uint64_t bus = 0;
  std::string bus_text;
  std::string device_class;  // "" when the file does not say, like the next three
  std::string vendor;
  std::string device;
  std::string link_speed;
  uint32_t link_width = 0;
  double link_gigabytes = 0;  // per second; from a file that gives this instead of speed and width
  uint32_t cpu = 0;           // position
  std::optional<uint32_t> parent;  // position; none when it hangs on the CPU
  bool has_children = false;       // other PCI devices
  bool is_nic = false;             // has a <nic>
  std::optional<NcclGpu> gpu;
  std::vector<NcclNet> nets;
};

struct NcclCpu {
  int line = 0;
  uint32_t host = 0;  // CPUs with another host_hash belong to another machine
  int numa = 0;
  ProcessorKind processor;
  std::vector<NcclNet> nets;
};

struct NcclSystem {
  uint32_t host_count = 0;
  std::vector<NcclCpu> cpus;  // in the order of the file
  std::vector<NcclPci> pcis;  // in the order of the file: parents before children
};

NcclSystem ReadNcclXml(std::string_view text, const std::string& file, Remarks& remarks);

}  // namespace rehearse
