// The output of ibnetdiscover, and nets of ibsim.
#include "tests/foreign/machines/fabric_files.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/machines/ibnetdiscover/import_ibnet.h"

namespace rehearse {
namespace {

void ReadSubnet(std::string_view input) { ImportIbnetdiscover(input, "net.txt", "dgx-h100"); }

std::vector<std::string> SubnetSeeds() {
  return {
      IbTree{.leaves = 2, .spines = 2, .nodes = 2, .adapters = 2, .cables = 1}.Text(),
      IbTree{.leaves = 2, .spines = 1, .nodes = 2, .adapters = 2, .rails = true}.Text(),
      "Switch 3 \"S-1\" # \"MF0;a:CS8500/L1/U1\" base port 0 lid 1 lmc 0\n"
      "[1][ext 4]\t\"S-2\"[2][ext 5]\t# \"b\" lid 2 4xHDR\n[3] \"R-3\"[1](3) # \"r\" 2x???\n"
      "Switch 3 \"S-2\" # \"b\"\n[2]\t\"S-1\"[1]\t# \"a\" lid 1 4xHDR\n"
      "Rt 1 \"R-3\" # \"r\"\n[1](3) \"S-1\"[3] # \"a\"\n",
      "Switch 4 \"s\"\n[1] \"node1\"[1]\n\nHca 1 \"node1\"\n\nHca 2 \"login1\"\n[2] \"s\"[2]\n"};
}

std::vector<std::string> SubnetWords() {
  return {"Switch\t41 ",
          "Ca\t1 ",
          "Rt\t2 ",
          "Hca 1 \"a\"\n",
          "\"S-1\"",
          "\"S-2\"",
          "\"H-1\"",
          "[1]",
          "[2]",
          "[4294967296]",
          "(1)",
          "[ext 1]",
          "\t",
          "# ",
          "\"",
          "\"node01 mlx5_0\"",
          "lid 5 ",
          "4xHDR",
          "12xFDR10",
          "4x???",
          "\n",
          "vendid=0x2c9\n",
          "switchguid=0x1(1)\n",
          "Chassis 1\n",
          "Mellanox Technologies",
          "Aggregation Node",
          "MF0;a:b/U1"};
}

const FuzzTargetRow kSubnetRow({"ibnetdiscover", ReadSubnet, SubnetSeeds, SubnetWords});

}  // namespace
}  // namespace rehearse
