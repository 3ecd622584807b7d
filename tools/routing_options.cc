#include "tools/routing_options.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "tools/number_options.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

RouteChoice ParseRouteChoice(const std::string& text) {
  const std::vector<std::string> names(std::begin(kRouteChoiceNames), std::end(kRouteChoiceNames));
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end())
    throw Error(fmt::format("--routing: found \"{}\"{}", text, KnownNames(text, names)));
  return static_cast<RouteChoice>(found - names.begin());
}

}  // namespace

void AddRoutingOptions(CommandSyntax* syntax) {
  syntax->takes["routing"] =
      TakenName({std::begin(kRouteChoiceNames), std::end(kRouteChoiceNames)});
  syntax->options.add_options()(
      "routing", po::value<std::string>()->value_name("NAME"),
      "how to choose among equal paths, instead of the fabric's own way: spray, flowlet or ecmp in "
      "fat trees; spray, minimal or valiant in dragonflies")(
      "queue-pairs", Whole("N", nullptr, 1u, kMostQueuePairs),
      "queue pairs per pair of ranks, each hashed separately (ecmp)")(
      "routing-seed", Whole("N", nullptr, uint64_t{0}, kMostRoutingSeed),
      "seed of ecmp's hash and of valiant's detours")(
      "no-pxn",
      "messages between rails leave by the sender's own NIC, as with NCCL_PXN_DISABLE=1, instead "
      "of over NVLink by the one on the receiver's rail")(
      "cross-nic",
      "rings may leave a machine by one rail's NIC and enter the next by another's, as with "
      "NCCL_CROSS_NIC=1");
}

FabricRouting ReadRoutingOptions(const po::variables_map& values, const Cluster& cluster) {
  FabricRouting routing;
  if (values.count("routing") > 0)
    routing.choice = ParseRouteChoice(values["routing"].as<std::string>());
  if (values.count("queue-pairs") > 0) routing.queue_pairs = values["queue-pairs"].as<uint32_t>();
  routing.pxn = values.count("no-pxn") == 0;
  routing.cross_nic = values.count("cross-nic") > 0;
  if (values.count("routing-seed") > 0) routing.seed = values["routing-seed"].as<uint64_t>();
  try {
    CheckRouting(routing, FabricOf(cluster), cluster.structure() == nullptr);
  } catch (const Error& error) {
    throw Error(
        fmt::format("{}: {}", routing.choice ? "--routing" : "--queue-pairs", error.what()));
  }
  return routing;
}

}  // namespace rehearse
