#include "topology/fabrics/routing.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

const char* Name(RouteChoice choice) { return kRouteChoiceNames[static_cast<size_t>(choice)]; }

FabricChoices ChoicesOfFatTree() {
  static constexpr RouteChoice kChoices[] = {RouteChoice::kSpray, RouteChoice::kFlowlet,
                                             RouteChoice::kEcmp};
  return {"a fat tree", kChoices};
}

FabricChoices ChoicesOfDragonfly() {
  static constexpr RouteChoice kChoices[] = {RouteChoice::kSpray, RouteChoice::kMinimal,
                                             RouteChoice::kValiant};
  return {"a dragonfly", kChoices};
}

FabricChoices ChoicesOfHyperX() {
  static constexpr RouteChoice kChoices[] = {RouteChoice::kDimensionOrder, RouteChoice::kValiant};
  return {"a HyperX", kChoices};
}

FabricChoices ChoicesOfTorus() {
  static constexpr RouteChoice kChoices[] = {RouteChoice::kDimensionOrder};
  return {"a torus or mesh", kChoices};
}

void CheckChoice(const FabricChoices& fabric, RouteChoice choice) {
  const auto& choices = fabric.choices;
  if (std::find(choices.begin(), choices.end(), choice) != choices.end()) return;
  std::vector<std::string> names;
  for (const RouteChoice one : choices) names.emplace_back(Name(one));
  throw Error(fmt::format("{} cannot have routing \"{}\"; it takes {}", fabric.fabric, Name(choice),
                          fmt::join(names, ", ")));
}

std::string ToText(const RoutingRule& rule) {
  if (rule.choice != RouteChoice::kEcmp) return Name(rule.choice);
  return fmt::format("ecmp with {} queue pair{}", rule.queue_pairs,
                     rule.queue_pairs == 1 ? "" : "s");
}

bool IsHashed(RouteChoice choice) {
  return choice == RouteChoice::kEcmp || choice == RouteChoice::kFlowlet ||
         choice == RouteChoice::kValiant;
}

}  // namespace rehearse
