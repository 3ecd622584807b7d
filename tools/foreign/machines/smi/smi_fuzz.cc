// The table of `nvidia-smi topo -m`, and those of AMD's tools.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/machines/smi/import_smi.h"

namespace rehearse {
namespace {

void ReadSmi(std::string_view input) { ImportSmiTopology(input, "box.txt"); }

std::vector<std::string> SmiSeeds() {
  return {
      "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV12\tPXB\t0-15\t0\n"
      "GPU1\tNV12\t X \tSYS\t16-31\t1\nNIC0\tPXB\tSYS\t X \n\nLegend:\n\n  X    = Self\n"
      "NIC Legend:\n\n  NIC0: mlx5_0\n",
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\nGPU0\t X \tPIX\tPHB\tSYS\t0-7\n"
      "GPU1\tPIX\t X \tPHB\tSYS\t0-7\nGPU2\tPHB\tPHB\t X \tSYS\t0-7\nGPU3\tSYS\tSYS\tSYS\t X "
      "\t8-15\n",
      "\x1b[4m\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\x1b[0m\nGPU0\t X "
      "\tNV2\tNODE\t0-3,8-11\nGPU1\tNV2\t X "
      "\tNODE\t0-3,8-11\nmlx5_0\tNODE\tNODE\t X \n",
      "== ROCm System Management Interface ==\n== Hops between two GPUs ==\n GPU0 GPU1\nGPU0 0 1\n"
      "GPU1 1 0\n\n== Link Type between two GPUs ==\n GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n"
      "GPU[0]\t: (Topology) Numa Node: 0\n",
      "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n"
      "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n",
      R"([{"gpu": 0, "bdf": "0000:01:00.0", "links": [{"gpu": 0, "link_type": "SELF"},
          {"gpu": 1, "link_type": "XGMI", "num_hops": 1, "bandwidth": "64000-64000"}]},
          {"gpu": 1, "bdf": "0000:02:00.0", "links": [{"gpu": 0, "link_type": "XGMI"}]}])",
      "LINK TYPE TABLE:\n 0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 SELF XGMI\n"
      "0000:22:00.0 PCIE SELF\n"};
}

std::vector<std::string> SmiWords() {
  return {"\tGPU0",
          "\tGPU1",
          "\tGPU15",
          "\tNIC0",
          "\tmlx5_0",
          "\t X ",
          "\tPIX",
          "\tPXB",
          "\tPHB",
          "\tNODE",
          "\tSYS",
          "\tSOC",
          "\tNV1",
          "\tNV18",
          "\tNV4294967296",
          "\tCPU Affinity",
          "\tNUMA Affinity",
          "\tGPU NUMA ID",
          "0-15",
          "0,2,4",
          "N/A",
          "\n",
          "GPU1",
          "Legend:",
          "NIC Legend:\n",
          "NIC0: mlx5_0",
          "\x1b[4m",
          "\x1b[0m",
          "4294967295",
          "18446744073709551616",
          "Link Type between two GPUs\n",
          "LINK TYPE TABLE:\n",
          "Hops between two GPUs\n",
          "XGMI",
          "PCIE",
          "GPU[0] Numa Node: 1\n",
          "GPU 2: Tesla V100-SXM2-16GB\n",
          "Link 3: 25.781 GB/s\n",
          "<inactive>"};
}

const FuzzTargetRow kSmiRow({"smi", ReadSmi, SmiSeeds, SmiWords});

}  // namespace
}  // namespace rehearse
