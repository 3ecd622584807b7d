// Slurm's topology.conf and topology.yaml. Nodes are the smallest preset's, so that what is drawn
// stays small.
#include "tests/foreign/machines/fabric_files.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/machines/slurm/import_slurm.h"

namespace rehearse {
namespace {

void ReadSlurm(std::string_view input) { ImportSlurm(input, "topology.conf", "switch"); }

std::vector<std::string> SlurmSeeds() {
  return {SlurmTree(4, 2),
          "SwitchName=s0 Nodes=a[1-2]n[01-02],b LinkSpeed=400 # near\nswitchname=top \\\n "
          "SWITCHES=\"s0,s1\"\nSwitchName=s1 Nodes=c\nSwitchName=more Switches=s[0-1]\n",
          "BlockName=b1 Nodes=a[1-4]\nBlockName=b2 Nodes=a[5-8]\nBlockSizes=4,8\n",
          "---\n- topology: x\n  cluster_default: true\n  tree:\n    switches:\n"
          "      - switch: s\n        children: l[1-2]\n      - switch: l1\n        nodes: n[1-2]\n"
          "      - switch: l2\n        nodes: n3\n",
          "- topology: y\n  block:\n    block_sizes: [2]\n    blocks:\n      - block: b\n"
          "        nodes: n[1-2]\n"};
}

std::vector<std::string> SlurmWords() {
  return {"SwitchName=",
          "Nodes=",
          "Switches=",
          "LinkSpeed=",
          "BlockName=",
          "Comment=",
          "BlockSizes=2",
          "block:",
          "tree:",
          "- switch: ",
          "nodes: ",
          "\n",
          "\\\n",
          "\r\n",
          "#",
          "\"",
          "[",
          "]",
          ",",
          "-",
          "[0-9]",
          "[001-016]",
          "[0-99999]",
          "[0-9][0-9]",
          "4294967296",
          "ALL",
          "leaf0",
          "spine",
          " "};
}

const FuzzTargetRow kSlurmRow({"slurm", ReadSlurm, SlurmSeeds, SlurmWords});

}  // namespace
}  // namespace rehearse
