// What other commands of the same tools print of links, as the tables that are read
// (tools/foreign/machines/smi/import_smi.h): `nvidia-smi nvlink -s`, which says how many links each
// GPU has and not where they lead, and `amd-smi topology --json`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct LinkListing {
  std::string table;   // as nvidia-smi topo -m, or amd-smi topology, would print it
  std::string device;  // what the GPUs are; "" if it is not said
  std::vector<std::string> remarks;
};

bool IsNvLinkStatus(std::string_view text);
// `device` is what all GPUs are, "" leaves it to the text. Two GPUs have all links to each other,
// four of a board (A100, H100) a third of them to each; of others since Ampere they lead to an
// NVSwitch. Throws Error with file and line, also where that is not certain.
LinkListing ReadNvLinkStatus(std::string_view text, const std::string& file,
                             const std::string& device);

bool IsAmdTopologyJson(std::string_view text);
LinkListing ReadAmdTopologyJson(std::string_view text, const std::string& file);

}  // namespace rehearse
