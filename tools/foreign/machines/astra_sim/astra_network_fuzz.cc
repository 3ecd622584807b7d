// Networks of ASTRA-sim and SimAI.
#include "sim/base/error.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/machines/astra_sim/import_network.h"

namespace rehearse {
namespace {

void ReadAstraNetwork(std::string_view input) {
  // The dimensions of what cannot be drawn as well: a logical topology is no network.
  try {
    ReadAstraDimensions(input, "network.yml");
  } catch (const Error&) {
  }
  ImportAstraNetwork(input, "network.yml", "");
}

std::vector<std::string> AstraNetworkSeeds() {
  return {
      "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 4, 3, 2 ]\n"
      "bandwidth: [ 50.0, 100.0, 25 ]  # GB/s\nlatency: [ 500.0, 1, 0 ]  # ns\n",
      R"({"logical-dims": ["8", "2"]})",
      "5 1 4\n4\n0 4 100Gbps 0.0005ms 0\n1 4 100Gbps 0.0005ms 0\n2 4 100Gbps 500ns 0\n"
      "3 4 100Gbps 500ns 0.1\n",
      "7 2 2 1 8 H100\n4 5 6\n0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n"
      "2 5 2880Gbps 0.000025ms 0\n3 5 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n"
      "1 6 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n3 6 400Gbps 0.0005ms 0\n"};
}

std::vector<std::string> AstraNetworkWords() {
  return {"topology: ",
          "npus_count: ",
          "bandwidth: ",
          "latency: ",
          "logical-dims",
          "Ring",
          "Switch",
          "[",
          "]",
          "100000",
          "1e300",
          "0 1 2 3\n",
          "400Gbps",
          "0.0005ms",
          "-1",
          "null",
          "\n"};
}

const FuzzTargetRow kAstraNetworkRow({"astra_network", ReadAstraNetwork, AstraNetworkSeeds,
                                      AstraNetworkWords});

}  // namespace
}  // namespace rehearse
